// SPDX-License-Identifier: Apache-2.0
#include "loadgen/summary.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "loadgen/find_rate.hpp"
#include "loadgen/stream_reader.hpp"

namespace spud::loadgen {
namespace {

using std::chrono::milliseconds;

// Scheduled at `at`, first text after `ttft`, then `tokens` - 1 gaps of `tpot`.
Outcome answered(milliseconds at, milliseconds ttft, milliseconds tpot, std::int64_t tokens) {
  Outcome outcome{.kind = OutcomeKind::kOk, .http_status = 200, .scheduled = at};
  outcome.sent = at;
  outcome.first_text = at + ttft;
  outcome.last_text = outcome.first_text + tpot * (tokens - 1);
  outcome.ended = outcome.last_text;
  outcome.output_tokens = tokens;
  return outcome;
}

TEST(Percentiles, AreThoseOfTheUsualDefinition) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const Percentiles p = percentiles_of(values);
  EXPECT_DOUBLE_EQ(p.p50, 50);
  EXPECT_DOUBLE_EQ(p.p90, 90);
  EXPECT_DOUBLE_EQ(p.p99, 99);
  EXPECT_DOUBLE_EQ(p.max, 100);
  EXPECT_DOUBLE_EQ(p.mean, 50);
  EXPECT_TRUE(std::isnan(percentiles_of({}).p99));
}

TEST(Summary, LatencyCountsFromTheScheduledTimeEvenWhenSentLate) {
  Outcome late = answered(milliseconds(1000), milliseconds(700), milliseconds(10), 11);
  late.sent = milliseconds(1500);
  const Summary summary = summarize({late}, {});
  EXPECT_DOUBLE_EQ(summary.ttft.p50, 0.7);
  EXPECT_DOUBLE_EQ(summary.tpot.p50, 0.01);
  EXPECT_DOUBLE_EQ(summary.e2e.p50, 0.8);
  EXPECT_DOUBLE_EQ(summary.lateness.p50, 0.5);
}

TEST(Summary, RatesAndGoodputAreOverTheWholeRun) {
  const Slo slo{.ttft = milliseconds(500)};
  const std::deque<Outcome> outcomes{
      answered(milliseconds(0), milliseconds(100), milliseconds(100), 10),
      answered(milliseconds(1000), milliseconds(600), milliseconds(100), 5),
      Outcome{.kind = OutcomeKind::kHttpStatus, .http_status = 429, .scheduled = milliseconds(900)},
      Outcome{.kind = OutcomeKind::kDropped, .scheduled = milliseconds(1500)}};
  const Summary summary = summarize(outcomes, slo);
  EXPECT_EQ(summary.requests, 4U);
  EXPECT_EQ(summary.answered, 2U);
  EXPECT_EQ(summary.within_slo, 1U);
  EXPECT_DOUBLE_EQ(summary.seconds, 2);
  EXPECT_DOUBLE_EQ(summary.output_tokens_per_s(), 7.5);
  EXPECT_DOUBLE_EQ(summary.goodput_per_s(), 0.5);
  EXPECT_EQ(summary.failures.at("http 429"), 1U);
  EXPECT_EQ(summary.failures.at("dropped"), 1U);
}

TEST(Summary, TenantsAreToldApart) {
  std::deque<Outcome> outcomes{answered(milliseconds(0), milliseconds(10), milliseconds(1), 2),
                               answered(milliseconds(0), milliseconds(90), milliseconds(1), 2)};
  outcomes[1].tenant = 1;
  EXPECT_DOUBLE_EQ(summarize(outcomes, {}, 0).ttft.p50, 0.01);
  EXPECT_DOUBLE_EQ(summarize(outcomes, {}, 1).ttft.p50, 0.09);
  EXPECT_EQ(summarize(outcomes, {}).requests, 2U);
}

TEST(Slo, HoldsAtTheQuantileAndFailuresMissIt) {
  std::deque<Outcome> outcomes;
  for (int i = 0; i < 99; ++i) {
    outcomes.push_back(answered(milliseconds(0), milliseconds(10), milliseconds(1), 2));
  }
  outcomes.push_back(answered(milliseconds(0), milliseconds(900), milliseconds(1), 2));
  const Slo slo{.ttft = milliseconds(100)};
  EXPECT_TRUE(meets_slo(outcomes, slo));
  EXPECT_FALSE(meets_slo(outcomes, slo, 0.995));
  outcomes.push_back(Outcome{.kind = OutcomeKind::kDropped});
  outcomes.push_back(Outcome{.kind = OutcomeKind::kTimeout});
  EXPECT_FALSE(meets_slo(outcomes, slo));
  EXPECT_FALSE(meets_slo({}, slo));
}

TEST(Slo, EachLimitHasItsOwnMisses) {
  std::deque<Outcome> outcomes;
  for (int i = 0; i < 100; ++i) {
    outcomes.push_back(answered(milliseconds(0), milliseconds(i == 0 ? 900 : 10),
                                milliseconds(i == 1 ? 500 : 1), 10));
  }
  EXPECT_TRUE(meets_slo(outcomes, {.ttft = milliseconds(100), .tpot = milliseconds(50)}));
}

TEST(FindRate, FindsTheEdgeWithinTheTolerance) {
  for (const double edge : {0.3, 1.0, 7.7, 123.0}) {
    const auto found =
        find_rate({.first = 2}, [edge](double rate) -> Result<bool> { return rate <= edge; });
    ASSERT_TRUE(found.has_value());
    EXPECT_LE(found->rate, edge);
    EXPECT_GT(found->rate, edge / 1.09);
  }
}

TEST(FindRate, LooksOnlyAboveWhatIsKnownToBeGood) {
  const auto worse = find_rate({.known_good = 10}, [](double) -> Result<bool> { return false; });
  EXPECT_EQ(worse->rate, 10);
  EXPECT_EQ(worse->trials.size(), 1U);
  const auto better =
      find_rate({.known_good = 10}, [](double rate) -> Result<bool> { return rate <= 50; });
  EXPECT_LE(better->rate, 50);
  EXPECT_GT(better->rate, 50 / 1.09);
}

TEST(FindRate, EndsWhereNothingOrEverythingMeets) {
  const auto none = find_rate({.first = 8}, [](double) -> Result<bool> { return false; });
  EXPECT_EQ(none->rate, 0);
  const auto all =
      find_rate({.first = 8, .highest = 100}, [](double) -> Result<bool> { return true; });
  EXPECT_EQ(all->rate, 100);
  EXPECT_LE(all->trials.size(), 6U);
}

constexpr std::string_view kText = R"(data: {"choices":[{"delta":{"content":"a"}}]})";
constexpr std::string_view kEmpty = R"(data: {"choices":[{"delta":{"role":"x","content":""}}]})";
constexpr std::string_view kUsage =
    R"(data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,)"
    R"("prompt_tokens_details":{"cached_tokens":5}}})";

TEST(StreamReader, NotesWhenTextCameAndWhatTheServerCounted) {
  Outcome outcome;
  StreamReader reader(outcome);
  EXPECT_TRUE(reader.push(fmt::format("{}\n\n", kEmpty), milliseconds(10)));
  EXPECT_TRUE(reader.push(fmt::format("{}\n\n", kText), milliseconds(20)));
  EXPECT_TRUE(reader.push(fmt::format("{}\n\n", kText), milliseconds(50)));
  EXPECT_TRUE(reader.push(fmt::format("{}\n\n", kText), milliseconds(60)));
  EXPECT_TRUE(reader.push(fmt::format("{}\n\ndata: [DONE]\n\n", kUsage), milliseconds(61)));
  reader.finish(milliseconds(62));
  EXPECT_EQ(outcome.kind, OutcomeKind::kOk);
  EXPECT_EQ(outcome.first_text, milliseconds(20));
  EXPECT_EQ(outcome.last_text, milliseconds(60));
  EXPECT_EQ(outcome.longest_gap, milliseconds(30));
  EXPECT_EQ(outcome.ended, milliseconds(62));
  EXPECT_EQ(outcome.prompt_tokens, 7);
  EXPECT_EQ(outcome.cached_tokens, 5);
  EXPECT_EQ(outcome.output_tokens, 3);
}

TEST(StreamReader, SpacesAfterColonsAndMissingUsageAreTaken) {
  Outcome outcome;
  StreamReader reader(outcome);
  EXPECT_TRUE(reader.push("data: {\"choices\": [{\"text\": \"a\"}], \"usage\": null}\n\n",
                          milliseconds(5)));
  EXPECT_TRUE(
      reader.push("data: {\"choices\": [{\"text\": \"b\"}]}\n\ndata: [DONE]\n\n", milliseconds(6)));
  reader.finish(milliseconds(7));
  EXPECT_EQ(outcome.kind, OutcomeKind::kOk);
  EXPECT_EQ(outcome.output_tokens, 2);
}

TEST(StreamReader, AStreamThatBreaksOffOrSaysAnErrorIsNoAnswer) {
  Outcome broken;
  StreamReader first(broken);
  EXPECT_TRUE(first.push(fmt::format("{}\n\n", kText), milliseconds(1)));
  first.finish(milliseconds(2));
  EXPECT_EQ(broken.kind, OutcomeKind::kBroken);
  Outcome refused;
  StreamReader second(refused);
  EXPECT_FALSE(second.push("data: {\"error\":{\"message\":\"no\"}}\n\n", milliseconds(1)));
  second.finish(milliseconds(2));
  EXPECT_EQ(refused.kind, OutcomeKind::kServerError);
  EXPECT_NE(second.message().find("no"), std::string::npos);
}

}  // namespace
}  // namespace spud::loadgen
