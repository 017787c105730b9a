// SPDX-License-Identifier: Apache-2.0
#include "model/top_logits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace spud::model {
namespace {

std::vector<TopLogit> sorted(const std::vector<float>& logits, std::size_t count) {
  std::vector<TopLogit> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    all.push_back({.token = static_cast<TokenId>(i), .logit = logits[i]});
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.logit > b.logit; });
  all.resize(std::min(count, all.size()));
  return all;
}

// Few different values, so that equals are cut at the end of the list.
std::vector<float> random_logits(std::size_t count) {
  std::mt19937 random(3);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = static_cast<float>(random() % 50);
  return logits;
}

TEST(TopLogits, AnyOrderOfPiecesKeepsTheSameOnes) {
  const auto kernels = kernels::select_kernels(kernels::Isa::kAvx512);
  const std::vector<float> logits = random_logits(1000);
  for (const std::int32_t count : {1, 5, 256, 1000}) {
    for (const bool backwards : {false, true}) {
      LogitSummary summary{.top_count = count};
      for (std::int64_t piece = 0; piece < 4; ++piece) {
        const std::int64_t first = 250 * (backwards ? 3 - piece : piece);
        TopLogits part(summary);
        part.add(kernels, logits.data() + first, 200, static_cast<TokenId>(first));
        part.add(kernels, logits.data() + first + 200, 50, static_cast<TokenId>(first + 200));
        part.merge_into(summary.top);
      }
      const auto expected = sorted(logits, static_cast<std::size_t>(count));
      ASSERT_EQ(summary.top.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(summary.top[i].token, expected[i].token) << i << " of " << count;
        EXPECT_EQ(summary.top[i].logit, expected[i].logit);
      }
    }
  }
}

TEST(TopLogits, NotANumberIsNeverKept) {
  const auto kernels = kernels::select_kernels(kernels::Isa::kAvx512);
  std::vector<float> logits(40, std::numeric_limits<float>::quiet_NaN());
  LogitSummary summary{.top_count = 3};
  TopLogits top(summary);
  top.add(kernels, logits.data(), 40, 0);
  top.merge_into(summary.top);
  EXPECT_TRUE(summary.top.empty());
}

}  // namespace
}  // namespace spud::model
