// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

namespace spud::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr SteadyTime kNow{std::chrono::seconds(100)};
constexpr SteadyTime kPast{std::chrono::seconds(99)};
constexpr SteadyTime kFuture{std::chrono::seconds(101)};

SequenceId id(std::uint64_t value) { return SequenceId(value); }

struct ChunkIs {
  std::uint64_t id;
  std::int64_t tokens;
  bool last;
  friend bool operator==(const PrefillChunk& chunk, const ChunkIs& is) {
    return chunk.id.value == is.id && chunk.num_tokens == is.tokens && chunk.last == is.last;
  }
};

StepPlan plan(const SchedulerOptions& options, std::vector<RunningView> running,
              std::vector<WaitingView> waiting, std::int64_t free_pages = 1000) {
  return make_fifo_scheduler(options)->plan(
      {.waiting = waiting, .running = running, .free_pages = free_pages, .now = kNow});
}

TEST(FifoScheduler, DecodesFirstAndFillsTheRestWithPrompts) {
  const auto p = plan({.step_rows = 20, .min_prefill_rows = 4},
                      {{.id = id(1), .prompt_tokens = 5, .prefilled = 5},
                       {.id = id(2), .prompt_tokens = 50, .prefilled = 10},
                       {.id = id(3), .prompt_tokens = 7, .prefilled = 7}},
                      {});
  EXPECT_THAT(p.decode, ElementsAre(id(1), id(3)));
  ASSERT_EQ(p.prefill.size(), 1U);
  EXPECT_EQ(p.prefill[0], (ChunkIs{2, 18, false}));
  EXPECT_EQ(p.num_rows(), 20);
}

TEST(FifoScheduler, PromptsShareAStepInOrder) {
  const auto p = plan({.step_rows = 100}, {{.id = id(1), .prompt_tokens = 90, .prefilled = 60}},
                      {{.id = id(2), .worst_case_pages = 2, .prompt_tokens = 40},
                       {.id = id(3), .worst_case_pages = 2, .prompt_tokens = 64}});
  EXPECT_THAT(p.admit, ElementsAre(id(2), id(3)));
  ASSERT_EQ(p.prefill.size(), 3U);
  EXPECT_EQ(p.prefill[0], (ChunkIs{1, 30, true}));
  EXPECT_EQ(p.prefill[1], (ChunkIs{2, 40, true}));
  EXPECT_EQ(p.prefill[2], (ChunkIs{3, 30, false}));
}

TEST(FifoScheduler, PromptsAdvanceEvenWhenDecodesFillTheStep) {
  std::vector<RunningView> running;
  for (std::uint64_t i = 0; i < 30; ++i) {
    running.push_back({.id = id(i), .prompt_tokens = 1, .prefilled = 1});
  }
  running.push_back({.id = id(99), .prompt_tokens = 500, .prefilled = 0});
  const auto p = plan({.max_sequences = 64, .step_rows = 20, .min_prefill_rows = 4}, running, {});
  EXPECT_EQ(p.decode.size(), 30U);
  ASSERT_EQ(p.prefill.size(), 1U);
  EXPECT_EQ(p.prefill[0], (ChunkIs{99, 4, false}));
}

TEST(FifoScheduler, AdmitsOnlyWhatFitsInTheWorstCase) {
  const auto p = plan({}, {},
                      {{.id = id(1), .worst_case_pages = 6, .prompt_tokens = 10},
                       {.id = id(2), .worst_case_pages = 4, .prompt_tokens = 10},
                       {.id = id(3), .worst_case_pages = 1, .prompt_tokens = 10}},
                      10);
  EXPECT_THAT(p.admit, ElementsAre(id(1), id(2)));
}

TEST(FifoScheduler, NobodyOvertakesTheFirstWhoDoesNotFit) {
  const auto p = plan({}, {},
                      {{.id = id(1), .worst_case_pages = 11, .prompt_tokens = 10},
                       {.id = id(2), .worst_case_pages = 1, .prompt_tokens = 10}},
                      10);
  EXPECT_THAT(p.admit, IsEmpty());
  EXPECT_FALSE(p.has_rows());
}

TEST(FifoScheduler, RunsNoMoreThanTheLimit) {
  const auto p = plan({.max_sequences = 2}, {{.id = id(1), .prompt_tokens = 1, .prefilled = 1}},
                      {{.id = id(2), .worst_case_pages = 1, .prompt_tokens = 10},
                       {.id = id(3), .worst_case_pages = 1, .prompt_tokens = 10}});
  EXPECT_THAT(p.admit, ElementsAre(id(2)));
}

TEST(FifoScheduler, ExpiredSequencesGetNoWork) {
  const auto p = plan({},
                      {{.id = id(1), .prompt_tokens = 1, .prefilled = 1, .deadline = kPast},
                       {.id = id(2), .prompt_tokens = 9, .prefilled = 0, .deadline = kNow},
                       {.id = id(3), .prompt_tokens = 9, .prefilled = 0, .deadline = kFuture}},
                      {{.id = id(4), .worst_case_pages = 1, .prompt_tokens = 3, .deadline = kPast},
                       {.id = id(5), .worst_case_pages = 1, .prompt_tokens = 3}});
  EXPECT_THAT(p.expire, ElementsAre(id(1), id(2), id(4)));
  EXPECT_THAT(p.decode, IsEmpty());
  EXPECT_THAT(p.admit, ElementsAre(id(5)));
  ASSERT_EQ(p.prefill.size(), 2U);
  EXPECT_EQ(p.prefill[0], (ChunkIs{3, 9, true}));
}

TEST(FifoScheduler, IdleInputGivesAnEmptyPlan) {
  const auto p = plan({}, {}, {});
  EXPECT_FALSE(p.has_rows());
  EXPECT_EQ(p.num_rows(), 0);
}

// A simulated engine: random arrivals run to their end; the limits hold in every step, first come
// is first admitted, and everyone finishes.
TEST(FifoScheduler, SimulatedLoadFinishesInOrderWithinItsLimits) {
  const SchedulerOptions options{.max_sequences = 5, .step_rows = 64, .min_prefill_rows = 8};
  auto scheduler = make_fifo_scheduler(options);
  std::mt19937_64 random(1);
  constexpr std::int64_t kPages = 40;
  struct Sequence {
    RunningView view;
    std::int64_t pages;
    std::int64_t to_generate;
  };
  std::map<std::uint64_t, Sequence> waiting;
  std::map<std::uint64_t, Sequence> running;
  std::uint64_t next_id = 0;
  std::uint64_t last_admitted = 0;
  std::int64_t free_pages = kPages;
  std::size_t finished = 0;
  constexpr std::uint64_t kTotal = 300;
  for (int step = 0; finished < kTotal; ++step) {
    ASSERT_LT(step, 100'000);
    if (next_id < kTotal && random() % 3 == 0) {
      const auto prompt = static_cast<std::int64_t>(1 + random() % 300);
      const auto generate = static_cast<std::int64_t>(1 + random() % 60);
      ++next_id;
      waiting[next_id] = {
          {.id = id(next_id), .prompt_tokens = prompt}, (prompt + generate + 31) / 32, generate};
    }
    std::vector<WaitingView> waiting_views;
    for (const auto& [key, s] : waiting) {
      waiting_views.push_back(
          {.id = s.view.id, .worst_case_pages = s.pages, .prompt_tokens = s.view.prompt_tokens});
    }
    std::vector<RunningView> running_views;
    for (const auto& [key, s] : running) running_views.push_back(s.view);
    const StepPlan p = scheduler->plan({.waiting = waiting_views,
                                        .running = running_views,
                                        .free_pages = free_pages,
                                        .now = kNow});
    for (const SequenceId admitted : p.admit) {
      ASSERT_GT(admitted.value, last_admitted);
      last_admitted = admitted.value;
      free_pages -= waiting.at(admitted.value).pages;
      running.insert(waiting.extract(admitted.value));
    }
    ASSERT_GE(free_pages, 0);
    ASSERT_LE(running.size(), 5U);
    ASSERT_LE(p.num_rows(), options.step_rows);
    ASSERT_TRUE(running.empty() || p.has_rows());
    std::vector<std::uint64_t> sampled;
    for (const SequenceId decoded : p.decode) sampled.push_back(decoded.value);
    for (const PrefillChunk& chunk : p.prefill) {
      Sequence& s = running.at(chunk.id.value);
      s.view.prefilled += chunk.num_tokens;
      ASSERT_EQ(chunk.last, s.view.prefilled == s.view.prompt_tokens);
      if (chunk.last) sampled.push_back(chunk.id.value);
    }
    for (const std::uint64_t key : sampled) {
      if (--running.at(key).to_generate > 0) continue;
      free_pages += running.at(key).pages;
      running.erase(key);
      ++finished;
    }
  }
  EXPECT_EQ(free_pages, kPages);
}

TEST(SchedulerOptions, RefusesLimitsThatCannotWork) {
  EXPECT_FALSE((SchedulerOptions{.max_sequences = 0}).validate().has_value());
  EXPECT_FALSE((SchedulerOptions{.step_rows = 8, .min_prefill_rows = 16}).validate().has_value());
  EXPECT_TRUE(SchedulerOptions{}.validate().has_value());
}

}  // namespace
}  // namespace spud::scheduler
