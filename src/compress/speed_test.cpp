// SPDX-License-Identifier: Apache-2.0
#include "compress/speed.hpp"

#include <gtest/gtest.h>

#include "compress/decision.hpp"

namespace spud::compress {
namespace {

SpeedRun constant(double prefill, double decode, int* calls = nullptr) {
  return [=]() -> Result<SpeedSample> {
    if (calls != nullptr) ++*calls;
    return SpeedSample{.prefill_seconds = prefill, .decode_seconds = decode};
  };
}

TEST(CompareSpeed, ReportsHowMuchFasterTheCandidateIs) {
  const auto speed = compare_speed({.pairs = 5, .prefill_tokens = 100, .decode_tokens = 10},
                                   constant(2, 1), constant(1, 2));
  ASSERT_TRUE(speed);
  EXPECT_DOUBLE_EQ(speed->prefill.estimate, 2);
  EXPECT_DOUBLE_EQ(speed->decode.estimate, 0.5);
  EXPECT_DOUBLE_EQ(speed->prefill_tokens_per_s, 100);
  EXPECT_DOUBLE_EQ(speed->baseline_decode_tokens_per_s, 10);
}

TEST(CompareSpeed, DropsTheWarmUpAndStopsWhenDecided) {
  int calls = 0;
  const auto speed =
      compare_speed({.pairs = 4, .max_pairs = 50, .prefill_limit = 0.9, .decode_limit = 0.9},
                    constant(1, 1), constant(1, 1, &calls));
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->pairs, 4);
  EXPECT_EQ(calls, 5);
}

TEST(CompareSpeed, RunsMorePairsWhileTheLimitLiesInTheInterval) {
  int calls = 0;
  const SpeedRun noisy = [&calls]() -> Result<SpeedSample> {
    ++calls;
    return SpeedSample{.prefill_seconds = calls % 2 == 0 ? 0.5 : 2.0, .decode_seconds = 1};
  };
  const auto speed =
      compare_speed({.pairs = 3, .max_pairs = 9, .prefill_limit = 1.0}, constant(1, 1), noisy);
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->pairs, 9);
}

TEST(CompareSpeed, OneSlowRunDoesNotMoveTheMedian) {
  EXPECT_DOUBLE_EQ(median_ratio({1, 1, 1, 1, 0.1}).estimate, 1);
}

TEST(JudgeSpeed, RefusesWhatIsNotShownToBeFastEnough) {
  const RuleOptions rules{.min_prefill_ratio = 0.9, .min_decode_ratio = 0.9};
  const RatioInterval fast{.estimate = 1.2, .lower = 1.1, .upper = 1.3};
  const RatioInterval unclear{.estimate = 1.0, .lower = 0.85, .upper = 1.2};
  EXPECT_TRUE(judge_speed(rules, {.prefill = fast, .decode = fast}).good);
  const RuleOutcome outcome = judge_speed(rules, {.prefill = fast, .decode = unclear});
  EXPECT_FALSE(outcome.good);
  EXPECT_NE(outcome.reason.find("decode runs at 1.00 [0.85, 1.20]"), std::string::npos);
}

TEST(JudgeFloor, AsksForOneInBothIntervals) {
  const RatioInterval one{.estimate = 1, .lower = 0.98, .upper = 1.01};
  const RatioInterval busy{.estimate = 1.3, .lower = 1.2, .upper = 1.4};
  EXPECT_TRUE(judge_floor({.prefill = one, .decode = one}, 0.03).good);
  EXPECT_FALSE(judge_floor({.prefill = one, .decode = busy}, 0.03).good);
}

TEST(JudgeSize, ComparesBytesOfTheFiles) {
  EXPECT_TRUE(judge_size({.max_size_ratio = 0.98}, 97, 100).good);
  EXPECT_FALSE(judge_size({.max_size_ratio = 0.98}, 99, 100).good);
}

}  // namespace
}  // namespace spud::compress
