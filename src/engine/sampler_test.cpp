// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/philox.hpp"
#include "kernels/log_sum_exp.hpp"

namespace spud::engine {
namespace {

const kernels::KernelTable kKernels = kernels::scalar_kernels();

// Probabilities 0.5, 0.25, 0.125, ... by token.
std::vector<float> halving_logits(std::size_t n) {
  std::vector<float> logits(n);
  for (std::size_t i = 0; i < n; ++i) logits[i] = -static_cast<float>(i) * std::log(2.0F);
  return logits;
}

std::map<TokenId, int> draw_many(SamplingOptions options, std::span<const float> logits,
                                 int draws) {
  SamplerScratch scratch;
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) {
    options.seed = static_cast<std::uint64_t>(i);
    ++counts[Sampler(options, {}).sample(logits, kKernels, scratch)];
  }
  return counts;
}

// Known answers published with the generator (Random123, kat_vectors, philox 4x32 10).
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfTheBest) {
  SamplerScratch scratch;
  const std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(Sampler({.temperature = 0}, {}).sample(logits, kKernels, scratch), 1);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const auto counts = draw_many({}, halving_logits(20), 4000);
  // Standard deviations are about 32, 27 and 21.
  EXPECT_NEAR(counts.at(0), 2000, 130);
  EXPECT_NEAR(counts.at(1), 1000, 110);
  EXPECT_NEAR(counts.at(2), 500, 85);
}

TEST(Sampler, TemperatureFlattensOrSharpens) {
  // At temperature 0.5 the ratios are squared: 3/4, 3/16, ...
  EXPECT_NEAR(draw_many({.temperature = 0.5F}, halving_logits(20), 4000).at(0), 3000, 110);
}

TEST(Sampler, FiltersKeepTheMostLikely) {
  const auto kept = [](const SamplingOptions& options) {
    std::set<TokenId> tokens;
    for (const auto& [token, count] : draw_many(options, halving_logits(20), 2000)) {
      tokens.insert(token);
    }
    return tokens;
  };
  EXPECT_EQ(kept({.top_k = 3}), (std::set<TokenId>{0, 1, 2}));
  EXPECT_EQ(kept({.top_k = 1}), (std::set<TokenId>{0}));
  EXPECT_EQ(kept({.top_p = 0.7F}), (std::set<TokenId>{0, 1}));
  EXPECT_EQ(kept({.top_p = 0.0001F}), (std::set<TokenId>{0}));
  EXPECT_EQ(kept({.min_p = 0.2F}), (std::set<TokenId>{0, 1, 2}));
  EXPECT_EQ(kept({.top_k = 3, .top_p = 0.6F}), (std::set<TokenId>{0, 1}));
}

TEST(Sampler, TopPLooksFarEnoughInFlatDistributions) {
  const std::vector<float> flat(1000, 0.0F);
  std::set<TokenId> tokens;
  for (const auto& [token, count] : draw_many({.top_p = 0.5F}, flat, 20000)) tokens.insert(token);
  EXPECT_EQ(tokens.size(), 500U);
  EXPECT_EQ(*tokens.rbegin(), 499);  // ties: the smaller id first
}

TEST(Sampler, LogitBiasBansAndForces) {
  SamplerScratch scratch;
  SamplingOptions options{.temperature = 0};
  options.logit_bias = {{0, -1000.0F}, {7, 4.0F}};
  EXPECT_EQ(Sampler(options, {}).sample(halving_logits(20), kKernels, scratch), 1);
  options.logit_bias[7] = 100;
  EXPECT_EQ(Sampler(options, {}).sample(halving_logits(20), kKernels, scratch), 7);
}

TEST(Sampler, PresenceAndFrequencyPenaltiesCountTheOutputOnly) {
  SamplerScratch scratch;
  const std::vector<float> logits = {2.0F, 1.5F, 0.0F};
  const std::vector<TokenId> prompt = {0, 0, 0};
  Sampler presence({.temperature = 0, .presence_penalty = 1}, prompt);
  EXPECT_EQ(presence.sample(logits, kKernels, scratch), 0);
  presence.accept(0);
  EXPECT_EQ(presence.sample(logits, kKernels, scratch), 1);
  Sampler frequency({.temperature = 0, .frequency_penalty = 0.3F}, prompt);
  frequency.accept(0);
  EXPECT_EQ(frequency.sample(logits, kKernels, scratch), 0);
  frequency.accept(0);
  EXPECT_EQ(frequency.sample(logits, kKernels, scratch), 1);
}

TEST(Sampler, RepetitionPenaltyCountsThePromptToo) {
  SamplerScratch scratch;
  const std::vector<float> logits = {2.0F, 1.5F, -1.0F};
  const std::vector<TokenId> prompt = {0};
  EXPECT_EQ(Sampler({.temperature = 0, .repetition_penalty = 2}, prompt)
                .sample(logits, kKernels, scratch),
            1);
  EXPECT_EQ(Sampler({.temperature = 0}, prompt).sample(logits, kKernels, scratch), 0);
}

TEST(Sampler, SameSeedAndPositionGiveTheSameDraw) {
  SamplerScratch scratch;
  const auto logits = halving_logits(20);
  Sampler a({.seed = 5}, {});
  Sampler b({.seed = 5}, {});
  std::vector<TokenId> drawn;
  for (int i = 0; i < 50; ++i) {
    drawn.push_back(a.sample(logits, kKernels, scratch));
    ASSERT_EQ(b.sample(logits, kKernels, scratch), drawn.back());
    a.accept(drawn.back());
    b.accept(drawn.back());
  }
  EXPECT_GT(std::set<TokenId>(drawn.begin(), drawn.end()).size(), 2U);
}

// The `count` largest, of equals the smaller token first.
model::LogitSummary summary_of(const std::vector<float>& logits, std::int32_t count) {
  model::LogitSummary summary{.top_count = count, .wants_log_sum_exp = true};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    summary.top.push_back({.token = static_cast<TokenId>(i), .logit = logits[i]});
  }
  std::ranges::stable_sort(summary.top, [](auto& a, auto& b) { return a.logit > b.logit; });
  summary.top.resize(static_cast<std::size_t>(count));
  summary.log_sum_exp =
      kernels::log_sum_exp(kKernels, logits.data(), static_cast<std::int64_t>(logits.size()));
  return summary;
}

TEST(Sampler, DrawsTheSameFromTheLargestLogitsAsFromAll) {
  SamplerScratch scratch;
  std::mt19937 random(1);
  std::vector<float> logits(2000);
  // Steps of a quarter: many equals, also where the list is cut.
  for (float& logit : logits) logit = static_cast<float>(random() % 60) * 0.25F;
  const SamplingOptions all_options[] = {
      {.temperature = 0},
      {.temperature = 2, .top_k = 1},
      {.temperature = 1, .top_k = 5},
      {.temperature = 0.7F, .top_k = 40, .top_p = 0.9F},
      {.temperature = 3, .top_k = 256, .min_p = 0.05F},
  };
  for (SamplingOptions options : all_options) {
    for (options.seed = 0; options.seed < 50; ++options.seed) {
      Sampler full(options, {});
      Sampler reduced(options, {});
      ASSERT_TRUE(reduced.top_needed().has_value());
      // More than it needs must not matter: log-probabilities may want them.
      const auto summary = summary_of(logits, *reduced.top_needed() + 3);
      for (int i = 0; i < 4; ++i) {
        const TokenId token = full.sample(logits, kKernels, scratch);
        ASSERT_EQ(reduced.sample(summary.top), token) << "top_k " << options.top_k;
        full.accept(token);
        reduced.accept(token);
        const LogprobResult a = compute_logprobs(logits, token, 3, kKernels);
        const LogprobResult b = compute_logprobs(summary, token, 3);
        ASSERT_EQ(a.chosen, b.chosen);
        for (std::size_t t = 0; t < 3; ++t) {
          ASSERT_EQ(a.top[t].token, b.top[t].token);
          ASSERT_EQ(a.top[t].logprob, b.top[t].logprob);
        }
      }
    }
  }
}

TEST(Sampler, WantsAllLogitsWhereAnyMayDecide) {
  EXPECT_EQ(Sampler({.temperature = 1}, {}).top_needed(), std::nullopt);
  EXPECT_EQ(Sampler({.temperature = 1, .top_k = 257}, {}).top_needed(), std::nullopt);
  EXPECT_EQ(Sampler({.temperature = 0, .logit_bias = {{3, 1.0F}}}, {}).top_needed(), std::nullopt);
  Sampler penalising({.temperature = 0, .presence_penalty = 1}, {});
  EXPECT_EQ(penalising.top_needed(), 1);
  penalising.accept(2);
  EXPECT_EQ(penalising.top_needed(), std::nullopt);
}

TEST(Logprobs, TopOnesAreSortedAndExact) {
  const std::vector<float> logits = {0, 2, 1, 2, -5};
  const LogprobResult result = compute_logprobs(logits, 4, 3, kKernels);
  const double sum = 1 + 2 * std::exp(2.0) + std::exp(1.0) + std::exp(-5.0);
  EXPECT_NEAR(result.chosen, -5 - std::log(sum), 1e-6);
  ASSERT_EQ(result.top.size(), 3U);
  EXPECT_EQ(result.top[0].token, 1);
  EXPECT_EQ(result.top[1].token, 3);
  EXPECT_EQ(result.top[2].token, 2);
  EXPECT_NEAR(result.top[2].logprob, 1 - std::log(sum), 1e-6);
}

TEST(Logprobs, MoreThanTheVocabularyGivesAll) {
  const std::vector<float> logits = {0, 2};
  EXPECT_EQ(compute_logprobs(logits, 0, 20, kKernels).top.size(), 2U);
}

}  // namespace
}  // namespace spud::engine
