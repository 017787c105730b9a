// SPDX-License-Identifier: Apache-2.0
#include "compress/passes/mixed.hpp"

#include <gtest/gtest.h>

namespace spud::compress::int4 {
namespace {

TEST(ByHarmPerByte, PutsTheCheapestSavingFirst) {
  const auto order = by_harm_per_byte({{.index = 0, .mean_kld = 0.4, .bytes_saved = 100},
                                       {.index = 1, .mean_kld = 0.1, .bytes_saved = 100},
                                       {.index = 2, .mean_kld = 0.2, .bytes_saved = 1000}});
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[0].index, 2u);
  EXPECT_EQ(order[1].index, 1u);
  EXPECT_EQ(order[2].index, 0u);
}

TEST(ByHarmPerByte, ATensorThatLooksBeneficialByChanceHasNoHarm) {
  const auto order = by_harm_per_byte({{.index = 0, .mean_kld = 0, .bytes_saved = 10},
                                       {.index = 1, .mean_kld = -0.5, .bytes_saved = 10}});
  EXPECT_EQ(order[0].index, 0u);  // equal harm: order of the file
}

TEST(LargestFitting, FindsTheEdgeWithFewQuestions) {
  for (const std::size_t edge : {0u, 1u, 57u, 211u}) {
    int questions = 0;
    const auto found = largest_fitting(0, 211, [&](std::size_t n) -> Result<bool> {
      ++questions;
      return n <= edge;
    });
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, edge);
    EXPECT_LE(questions, 8);
  }
}

// Loss adds up here; the budget is 10.
std::size_t fit_in_ten(std::vector<Sensitivity>& order) {
  const auto fits = [&order](std::size_t n) -> Result<bool> {
    double loss = 0;
    for (std::size_t i = 0; i < n; ++i) loss += order[i].mean_kld;
    return loss <= 10;
  };
  const auto found = fit_most(order, fits);
  EXPECT_TRUE(found);
  return found ? *found : 0;
}

TEST(FitMost, PassesOverAHeavyTensorThatIsTooMuch) {
  std::vector<Sensitivity> order = {{.index = 0, .mean_kld = 4, .bytes_saved = 100},
                                    {.index = 1, .mean_kld = 9, .bytes_saved = 200},
                                    {.index = 2, .mean_kld = 5, .bytes_saved = 100},
                                    {.index = 3, .mean_kld = 5, .bytes_saved = 90}};
  EXPECT_EQ(fit_in_ten(order), 2u);
  EXPECT_EQ(order[0].index, 0u);
  EXPECT_EQ(order[1].index, 2u);
}

TEST(FitMost, EndsAtALightTensorThatIsTooMuch) {
  std::vector<Sensitivity> order = {{.index = 0, .mean_kld = 4, .bytes_saved = 100}};
  for (std::size_t i = 1; i < 20; ++i) {
    order.push_back({.index = i, .mean_kld = i == 1 ? 9.0 : 0.1, .bytes_saved = 10});
  }
  EXPECT_EQ(fit_in_ten(order), 1u);
}

TEST(FitMost, TakesAllWhenAllFit) {
  std::vector<Sensitivity> order = {{.index = 0, .mean_kld = 4, .bytes_saved = 100},
                                    {.index = 1, .mean_kld = 6, .bytes_saved = 100}};
  EXPECT_EQ(fit_in_ten(order), 2u);
}

TEST(FitMost, TakesNoneWhenNoneFits) {
  std::vector<Sensitivity> order = {{.index = 0, .mean_kld = 11, .bytes_saved = 100},
                                    {.index = 1, .mean_kld = 12, .bytes_saved = 100}};
  EXPECT_EQ(fit_in_ten(order), 0u);
}

TEST(LargestFitting, HandsOnAnError) {
  const auto found = largest_fitting(
      0, 10, [](std::size_t) -> Result<bool> { return fail(ErrorCode::kCancelled, "stopped"); });
  EXPECT_FALSE(found);
}

}  // namespace
}  // namespace spud::compress::int4
