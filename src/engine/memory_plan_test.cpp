// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_plan.hpp"

#include <gmock/gmock.h>

#include <regex>

#include "engine/testing/engine_fixture.hpp"

namespace spud::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MemoryPlanTest : public EngineTest {
 protected:
  static constexpr std::int64_t kContext = 512;
  EngineOptions options_{.max_sequences = 4, .threads = 2, .reserved_bytes = 10 << 20};

  MemoryPlan plan() const {
    return plan_memory(*model_, options_, model_->kv_geometry(), kContext, 2);
  }
  // The engine's pages, or why there is none.
  Result<std::int64_t> pages_with(std::uint64_t memory) {
    options_.memory_bytes = static_cast<std::int64_t>(memory);
    SPUD_TRY(auto engine,
             make_engine({.model = model_, .tokenizer = tokenizer_, .clock = &clock_}, options_));
    return engine->stats().kv_pages_total;
  }
  std::string error_with(std::uint64_t memory) {
    const auto pages = pages_with(memory);
    return pages ? "accepted" : pages.error().message();
  }
};

TEST_F(MemoryPlanTest, ABudgetIsEnoughFromOneFullContextOnAndNotAByteEarlier) {
  constexpr std::uint64_t kOneContext = kContext / kernels::kPageTokens;
  const std::uint64_t least = plan().with_pages(kOneContext);
  EXPECT_EQ(pages_with(least), std::int64_t{kOneContext});
  EXPECT_EQ(pages_with(plan().with_pages(kOneContext + 3)), std::int64_t{kOneContext + 3});
  EXPECT_EQ(pages_with(plan().with_pages(1000)), std::int64_t{4 * kOneContext})
      << "no more than all";
  EXPECT_THAT(error_with(least - 1),
              AllOf(HasSubstr(fmt::format("--memory (memory) is {} bytes", least - 1)),
                    HasSubstr(fmt::format("raise --memory to at least {}", least)),
                    HasSubstr("--ctx"), HasSubstr("--max-sequences")));
}

TEST_F(MemoryPlanTest, KeysAndValuesThatWereAskedForMustFitToo) {
  const std::uint64_t page = model_->kv_geometry().page_bytes();
  options_.kv_memory_bytes = static_cast<std::int64_t>(20 * page);
  const std::uint64_t least = plan().with_pages(20);
  EXPECT_EQ(pages_with(least), 20);
  EXPECT_EQ(pages_with(least + (100U << 20)), 20);
  const std::string error = error_with(least - 1);
  EXPECT_THAT(error, AllOf(HasSubstr(fmt::format("--kv-memory (kv_memory) is {} bytes", 20 * page)),
                           HasSubstr("--memory (memory) is"),
                           HasSubstr(fmt::format("lower --kv-memory to {}", 19 * page)),
                           HasSubstr(fmt::format("raise --memory to at least {}", least))));
  options_.kv_memory_bytes = static_cast<std::int64_t>(15 * page);
  EXPECT_THAT(error_with(least), HasSubstr(fmt::format("take {}: raise it", 16 * page)));
}

TEST_F(MemoryPlanTest, WhatTakesMoreIsPlannedWithMore) {
  const MemoryPlan base = plan();
  EXPECT_EQ(base.activations, model_->workspace_bytes());
  EXPECT_GT(base.activations, 0U);
  EXPECT_EQ(base.reserved, 10U << 20);
  options_.max_sequences = 64;  // beyond what guessing takes
  EXPECT_GT(plan().logits, base.logits);
  options_.max_queue *= 2;
  EXPECT_GT(plan().requests, base.requests);
  EXPECT_EQ(2 * plan_memory(*model_, options_, model_->kv_geometry(), kContext, 1).sampling,
            plan().sampling);
}

TEST_F(MemoryPlanTest, TheSmallestLimitCountsAndIsNamed) {
  using From = MemoryLimit::From;
  EXPECT_EQ(smallest_limit(0, std::nullopt, 100).from, From::kMachine);
  EXPECT_EQ(smallest_limit(0, 50, 100).bytes, 50U);
  EXPECT_EQ(smallest_limit(0, 50, 100).from, From::kCgroup);
  EXPECT_EQ(smallest_limit(40, 50, 100).from, From::kOption);
  EXPECT_EQ(smallest_limit(60, 50, 100).from, From::kCgroup);
  EXPECT_EQ(smallest_limit(600, std::nullopt, 100).bytes, 100U);
  const auto error = choose_pages(plan(), smallest_limit(60, 50, 100), options_, kContext);
  ASSERT_FALSE(error.has_value());
  EXPECT_THAT(error.error().message(), HasSubstr("the cgroup allows 50 bytes"));
}

}  // namespace
}  // namespace spud::engine
