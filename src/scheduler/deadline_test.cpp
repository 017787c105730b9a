// SPDX-License-Identifier: Apache-2.0
// Both errors of early refusal, counted on a simulated machine under more load than it can do: who
// was refused and would have made it (the same traffic once more, with this one request not
// refusable), and who was not refused and did not make it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "scheduler/policies.hpp"
#include "scheduler/simulation.hpp"

namespace spud::scheduler {
namespace {

struct Errors {
  int with_deadline = 0;
  int met = 0;
  int refused = 0;
  int late = 0;            // neither refused nor in time
  int for_nothing = 0;     // of those, were computed, at least in part
  int examined = 0;        // of the refused
  int would_have_met = 0;  // of those

  Errors& operator+=(const Errors& other) {
    with_deadline += other.with_deadline;
    met += other.met;
    refused += other.refused;
    late += other.late;
    for_nothing += other.for_nothing;
    examined += other.examined;
    would_have_met += other.would_have_met;
    return *this;
  }
};

SimReport simulate(const std::vector<SimRequest>& requests, const SimOptions& options) {
  auto scheduler = *make_scheduler("fair", options.limits);
  return Simulation(*scheduler, options).run(requests);
}

bool would_have_met(std::vector<SimRequest> requests, std::size_t index,
                    const SimOptions& options) {
  const double deadline = requests[index].deadline_s;
  const double until = requests[index].arrival_s + deadline;
  requests[index].deadline_s = 0;
  std::erase_if(requests, [&](const SimRequest& r) { return r.arrival_s > until; });
  const SimResult result = simulate(requests, options).results[index];
  return result.finished_s > 0 && result.finished_s <= deadline;
}

Errors count_errors(const std::vector<SimRequest>& requests, const SimOptions& options,
                    int most_examined) {
  const SimReport report = simulate(requests, options);
  Errors errors;
  std::vector<std::size_t> refused;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].deadline_s <= 0) continue;
    const SimResult& result = report.results[i];
    ++errors.with_deadline;
    errors.met += result.finished_s > 0;
    errors.late += result.expired;
    errors.for_nothing += result.expired && result.began;
    if (result.refused) refused.push_back(i);
  }
  errors.refused = static_cast<int>(refused.size());
  const std::size_t every = std::max<std::size_t>(1, refused.size() / most_examined);
  for (std::size_t i = every / 2; i < refused.size(); i += every) {
    ++errors.examined;
    errors.would_have_met += would_have_met(requests, refused[i], options);
  }
  return errors;
}

enum class Length { kKnown, kDrawn };

// Bursts of three tenants, half of the requests with a deadline; about 1.3 times what the machine
// can do while they last.
std::vector<SimRequest> bursts(std::uint64_t seed, Length length) {
  std::mt19937_64 random(seed);
  std::vector<SimRequest> requests;
  double at = 0;
  for (int i = 0; i < 900; ++i) {
    const bool busy = i / 60 % 3 != 0;
    at += std::exponential_distribution<double>(busy ? 16 : 3)(random);
    const double prompt = std::lognormal_distribution<double>(5, 0.9)(random);
    const double output = std::exponential_distribution<double>(1.0 / 50)(random);
    requests.push_back(
        {.arrival_s = at,
         .prompt = std::clamp<std::int64_t>(static_cast<std::int64_t>(prompt), 5, 1500),
         .output = std::clamp<std::int64_t>(static_cast<std::int64_t>(output), 1, 400),
         .max_tokens = length == Length::kKnown ? 0 : 400,
         .who = {.tenant = static_cast<std::uint32_t>(random() % 3),
                 .weight = 1 + static_cast<double>(random() % 2)},
         .deadline_s =
             random() % 2 == 0 ? std::exponential_distribution<double>(0.25)(random) + 0.3 : 0.0,
         .exact = length == Length::kKnown});
  }
  return requests;
}

// Over three runs; prints what is asserted.
Errors count_all_errors(const char* name, Length length) {
  Errors sum;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    sum += count_errors(bursts(seed, length),
                        {.limits = {.max_sequences = 16}, .machine = small_model_s},
                        /*most_examined=*/25);
  }
  std::printf(
      "%s: %d with a deadline, %d in time, %d refused (%d of %d examined would have made it), "
      "%d late (%d of them begun)\n",
      name, sum.with_deadline, sum.met, sum.refused, sum.would_have_met, sum.examined, sum.late,
      sum.for_nothing);
  return sum;
}

// At most one in so many.
struct OneIn {
  int late;
  int wrongly_refused;
};
void expect_few(const Errors& sum, OneIn most) {
  EXPECT_GT(sum.refused, sum.with_deadline / 10) << "or it was too easy";
  EXPECT_GT(sum.met, sum.with_deadline * 3 / 4);
  EXPECT_LE(sum.for_nothing, sum.with_deadline / most.late);
  EXPECT_LE(sum.late, sum.with_deadline / most.late);
  EXPECT_LE(sum.would_have_met, sum.examined / most.wrongly_refused);
}

TEST(Deadlines, WhereLengthsAreKnownHardlyAnyDecisionIsWrong) {
  expect_few(count_all_errors("known lengths", Length::kKnown),
             {.late = 25, .wrongly_refused = 30});
}

// Nobody knows how long an answer will be: guesses err to both sides.
TEST(Deadlines, WhereLengthsAreDrawnFewDecisionsAreWrong) {
  expect_few(count_all_errors("drawn lengths", Length::kDrawn),
             {.late = 15, .wrongly_refused = 10});
}

// A long queue of another tenant is not in front of a tenant's first request, and one's own is.
TEST(Deadlines, TheQueueAheadIsTheOneOfFairOrder) {
  std::vector<SimRequest> requests;
  for (int i = 0; i < 60; ++i) {
    requests.push_back({.prompt = 800, .output = 30, .who = {.tenant = 1}, .exact = true});
  }
  const SimRequest small{
      .arrival_s = 1, .prompt = 60, .output = 10, .deadline_s = 2.5, .exact = true};
  requests.push_back(small);
  requests.back().who.tenant = 2;
  requests.push_back(small);
  requests.back().who.tenant = 1;
  const SimReport report =
      simulate(requests, {.limits = {.max_sequences = 8}, .machine = small_model_s});
  EXPECT_FALSE(report.results[60].refused);
  EXPECT_GT(report.results[60].finished_s, 0);
  EXPECT_LE(report.results[60].finished_s, 2.5);
  EXPECT_TRUE(report.results[61].refused);
}

// A burst of requests that cannot make it is not judged in one step, for which all would wait.
TEST(Deadlines, ABurstIsJudgedAFewAtATimeAndNobodyIsForgotten) {
  constexpr std::size_t kBurst = 100;
  constexpr std::size_t kMostAStep = 32;
  const auto scheduler = *make_scheduler("fair", {.max_sequences = 1});
  const SteadyTime now{std::chrono::seconds(10)};
  std::vector<WaitingView> waiting;
  for (std::uint64_t id = 1; id <= kBurst; ++id) {
    waiting.push_back({.id = SequenceId(id),
                       .worst_case_pages = 4000,
                       .prompt_tokens = 100'000,
                       .deadline = now + std::chrono::milliseconds(1),
                       .max_new_tokens = 1000});
  }
  std::size_t steps = 0;
  for (; !waiting.empty() && steps < kBurst; ++steps) {
    const StepPlan plan = scheduler->plan({.waiting = waiting, .free_pages = 10, .now = now});
    EXPECT_LE(plan.refuse.size(), kMostAStep);
    std::erase_if(waiting, [&](const WaitingView& view) {
      return std::ranges::any_of(plan.refuse, [&](const Refusal& r) { return r.id == view.id; });
    });
  }
  EXPECT_EQ(steps, (kBurst + kMostAStep - 1) / kMostAStep);
}

}  // namespace
}  // namespace spud::scheduler
