// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cost_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace spud::scheduler {
namespace {

using Machine = std::function<double(const StepCost&)>;  // seconds

double line(const StepCost& c) {
  return 4e-3 + 2.5e-4 * static_cast<double>(c.decode_rows) +
         1.1e-4 * static_cast<double>(c.prefill_rows) +
         2e-8 * static_cast<double>(c.context_tokens);
}

StepCost random_step(std::mt19937_64& random) {
  const auto decode = static_cast<std::int64_t>(random() % 32);
  const auto prefill = static_cast<std::int64_t>(random() % 3 == 0 ? 0 : random() % 128);
  return {.decode_rows = decode,
          .prefill_rows = prefill,
          .context_tokens = static_cast<std::int64_t>(random() % 500) * (decode + prefill)};
}

void run(CostModel& model, const Machine& machine, int steps, std::mt19937_64& random,
         double noise = 0.05) {
  std::normal_distribution<double> factor(1, noise);
  for (int i = 0; i < steps; ++i) {
    StepCost cost = random_step(random);
    cost.duration = std::chrono::nanoseconds(
        static_cast<std::int64_t>(1e9 * machine(cost) * std::max(factor(random), 0.1)));
    model.observe(cost);
  }
}

double error_at(const CostModel& model, const Machine& machine, std::int64_t decode,
                std::int64_t prefill, std::int64_t context) {
  const double truth = machine(
      {.decode_rows = decode, .prefill_rows = prefill, .context_tokens = context, .duration = {}});
  return std::abs(model.predict_s(decode, prefill, context) / truth - 1);
}

TEST(CostModel, LearnsALineFromFewNoisySteps) {
  CostModel model;
  std::mt19937_64 random(1);
  run(model, line, 60, random);
  EXPECT_LT(error_at(model, line, 1, 0, 100), 0.15);
  EXPECT_LT(error_at(model, line, 16, 64, 20'000), 0.1);
  EXPECT_LT(error_at(model, line, 0, 128, 10'000), 0.1);
  EXPECT_LT(model.relative_error(), 0.2);
}

TEST(CostModel, AFewDisturbedStepsDoNotMoveIt) {
  CostModel model;
  std::mt19937_64 random(2);
  run(model, line, 300, random);
  const Machine disturbed = [&](const StepCost& c) {
    return line(c) * (random() % 20 == 0 ? 50 : 1);
  };
  run(model, disturbed, 300, random);
  EXPECT_LT(error_at(model, line, 8, 32, 5'000), 0.2);
}

TEST(CostModel, FollowsAMachineThatBecomesSlower) {
  CostModel model;
  std::mt19937_64 random(3);
  run(model, line, 500, random);
  const Machine slower = [](const StepCost& c) { return 2.5 * line(c); };
  run(model, slower, 500, random);
  EXPECT_LT(error_at(model, slower, 8, 64, 10'000), 0.15);
  run(model, line, 500, random);
  EXPECT_LT(error_at(model, line, 8, 64, 10'000), 0.15);
}

// The same step a million times says nothing about other steps; then comes another.
TEST(CostModel, MonotonyDoesNotMakeItForgetOrExplode) {
  CostModel model;
  std::mt19937_64 random(4);
  run(model, line, 300, random);
  StepCost same{.decode_rows = 4, .prefill_rows = 0, .context_tokens = 1000, .duration = {}};
  same.duration = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * line(same)));
  for (int i = 0; i < 1'000'000; ++i) model.observe(same);
  EXPECT_LT(error_at(model, line, 4, 0, 1000), 0.02);
  EXPECT_LT(error_at(model, line, 16, 64, 10'000), 0.3);
  run(model, line, 50, random);
  EXPECT_LT(error_at(model, line, 16, 64, 10'000), 0.15);
}

TEST(CostModel, StaysFiniteAndNotNegativeWhateverTheClockSays) {
  CostModel model;
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    StepCost cost = random_step(random);
    const std::int64_t extremes[] = {0, -1'000'000'000, 1, INT64_MAX, 3'600'000'000'000};
    cost.duration = std::chrono::nanoseconds(extremes[random() % 5]);
    model.observe(cost);
    const double seconds = model.predict_s(32, 256, 100'000);
    ASSERT_TRUE(std::isfinite(seconds));
    ASSERT_GT(seconds, 0);
    ASSERT_GE(model.coefficients().prefill_row, 0);
  }
  run(model, line, 2000, random);
  EXPECT_LT(error_at(model, line, 8, 64, 10'000), 0.3);
}

}  // namespace
}  // namespace spud::scheduler
