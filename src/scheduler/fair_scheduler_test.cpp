// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policies.hpp"
#include "scheduler/simulation.hpp"

namespace spud::scheduler {
namespace {

SimReport simulate(const std::vector<SimRequest>& requests, SimOptions options,
                   std::string_view policy = "fair") {
  if (!options.machine) options.machine = small_model_s;
  auto scheduler = *make_scheduler(policy, options.limits);
  return Simulation(*scheduler, options).run(requests);
}

void sort_by_arrival(std::vector<SimRequest>& requests) {
  std::ranges::stable_sort(requests, {}, &SimRequest::arrival_s);
}

std::vector<double> first_tokens(const SimReport& report, const std::vector<SimRequest>& requests,
                                 std::uint32_t tenant) {
  std::vector<double> out;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].who.tenant == tenant) out.push_back(report.results[i].first_token_s);
  }
  return out;
}

std::vector<SimRequest> one_a_second(std::uint32_t tenant, int count, std::int64_t prompt = 30,
                                     std::int64_t output = 16) {
  std::vector<SimRequest> out;
  for (int i = 0; i < count; ++i) {
    out.push_back({.arrival_s = 1 + i * 1.003,
                   .prompt = prompt,
                   .output = output,
                   .who = {.tenant = tenant}});
  }
  return out;
}

TEST(FairScheduler, StepsStayWithinTheirTarget) {
  std::vector<SimRequest> requests;
  std::mt19937_64 random(1);
  double at = 0;
  for (int i = 0; i < 300; ++i) {
    at += std::exponential_distribution<double>(4)(random);
    requests.push_back({.arrival_s = at,
                        .prompt = static_cast<std::int64_t>(10 + random() % 600),
                        .output = static_cast<std::int64_t>(1 + random() % 80)});
  }
  const SimReport report =
      simulate(requests, {.limits = {.step_target = std::chrono::milliseconds(25)}});
  EXPECT_LT(percentile(report.steps_s, 0.99), 0.028);
  EXPECT_GT(percentile(report.steps_s, 0.9), 0.02) << "the budget is used";
  for (const SimResult& result : report.results) EXPECT_GT(result.finished_s, 0);
}

TEST(FairScheduler, AFloodOfOneTenantLeavesTheOthersFirstTokensAlone) {
  const std::vector<SimRequest> quiet = one_a_second(2, 30);
  const double unloaded = percentile(first_tokens(simulate(quiet, {}), quiet, 2), 0.99);
  std::vector<SimRequest> requests = quiet;
  // Again and again 64 prompts of 1000 tokens.
  for (int burst = 0; burst < 3; ++burst) {
    for (int i = 0; i < 64; ++i) {
      requests.push_back(
          {.arrival_s = 1.5 + burst * 8, .prompt = 1000, .output = 64, .who = {.tenant = 1}});
    }
  }
  sort_by_arrival(requests);
  const SimReport report = simulate(requests, {});
  const double loaded = percentile(first_tokens(report, requests, 2), 0.99);
  EXPECT_LE(loaded, 4 * unloaded) << "unloaded " << unloaded;
  RecordProperty("ratio", std::to_string(loaded / unloaded));
  for (const SimResult& result : report.results) EXPECT_GT(result.finished_s, 0);
  const SimReport fifo = simulate(requests, {}, "fifo");
  EXPECT_GT(percentile(first_tokens(fifo, requests, 2), 0.99), 10 * loaded) << "or it is too easy";
}

// Its next request would wait for a long step that nobody else minded.
TEST(FairScheduler, ATenantThatWasHereAMomentAgoStillKeepsStepsShort) {
  const auto scheduler = *make_scheduler("fair", {});
  const auto target_at = [&](int second, std::uint32_t tenant) {
    const std::vector<WaitingView> waiting = {
        {.id = SequenceId(1), .prompt_tokens = 100, .who = {.tenant = tenant}}};
    (void)scheduler->plan(
        {.waiting = waiting, .free_pages = 100, .now = SteadyTime{std::chrono::seconds(second)}});
    return scheduler->stats().step_target;
  };
  const auto alone = target_at(100, 1);
  EXPECT_LT(target_at(110, 2), alone);
  EXPECT_LT(target_at(111, 1), alone);
  EXPECT_LT(target_at(170, 1), alone);
  EXPECT_EQ(target_at(172, 1), alone);
  EXPECT_EQ(target_at(500, 2), alone) << "nobody else was here for minutes";
}

TEST(FairScheduler, TenantsShareByWeight) {
  // Both have far more to do than fits into the time looked at.
  std::vector<SimRequest> requests;
  for (int i = 0; i < 200; ++i) {
    requests.push_back({.prompt = 400, .output = 20, .who = {.tenant = 1, .weight = 1}});
    requests.push_back({.prompt = 400, .output = 20, .who = {.tenant = 2, .weight = 3}});
  }
  const SimReport report = simulate(requests, {});
  double last_of_heavy = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].who.tenant == 2) {
      last_of_heavy = std::max(last_of_heavy, report.results[i].finished_s);
    }
  }
  std::int64_t light_done = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    light_done += requests[i].who.tenant == 1 && report.results[i].finished_s < last_of_heavy;
  }
  EXPECT_NEAR(static_cast<double>(light_done), 200.0 / 3, 15);
}

TEST(FairScheduler, WhoComesBackIsNeitherPunishedNorOwedAnything) {
  // Tenant 1 was alone for long; then both are there and must get the same.
  std::vector<SimRequest> requests;
  for (int i = 0; i < 100; ++i)
    requests.push_back({.prompt = 300, .output = 5, .who = {.tenant = 1}});
  for (int i = 0; i < 60; ++i) {
    for (const std::uint32_t tenant : {1U, 2U}) {
      requests.push_back({.arrival_s = 3, .prompt = 300, .output = 5, .who = {.tenant = tenant}});
    }
  }
  const SimReport report = simulate(requests, {});
  double mean[3] = {0, 0, 0};
  for (std::size_t i = 100; i < requests.size(); ++i) {
    mean[requests[i].who.tenant] += report.results[i].finished_s / 60;
  }
  // Tenant 1 still has the rest of its first hundred before it.
  EXPECT_LT(mean[2], mean[1]);
  EXPECT_GT(mean[2], 0.3 * mean[1]);
}

TEST(FairScheduler, PriorityGoesFirstAndAgeingKeepsTheRestAlive) {
  std::vector<SimRequest> requests;
  requests.push_back({.prompt = 800, .output = 4, .who = {.priority = 5}});
  // More urgent work than the machine can do, for as long as it takes.
  for (int i = 0; i < 400; ++i) {
    requests.push_back({.arrival_s = i * 0.05, .prompt = 400, .output = 2});
  }
  sort_by_arrival(requests);
  SimOptions options{.limits = {.max_sequences = 4}};
  const SimReport report = simulate(requests, options);
  EXPECT_GT(report.results[0].first_token_s, 4.9);
  // Five levels are worth five seconds: it goes before whoever came more than that later.
  std::size_t overtaken = 0;
  for (std::size_t i = 1; i < requests.size(); ++i) {
    if (requests[i].arrival_s < 5.2) continue;
    const SimResult& later = report.results[i];
    overtaken += requests[i].arrival_s + later.first_token_s < report.results[0].first_token_s;
  }
  EXPECT_LE(overtaken, 4U);
  EXPECT_GT(report.end_s, 30) << "the machine was overloaded";
}

TEST(FairScheduler, RunningOutOfPagesPreemptsTheLatestAndEveryoneFinishes) {
  std::vector<SimRequest> requests;
  for (int i = 0; i < 12; ++i) {
    requests.push_back({.arrival_s = i * 0.01, .prompt = 60, .output = 500});
  }
  SimOptions options{.pages = 64};
  const SimReport report = simulate(requests, options);
  std::int64_t preempted = 0;
  for (const SimResult& result : report.results) {
    EXPECT_GT(result.finished_s, 0);
    preempted += result.preempted;
  }
  EXPECT_GT(preempted, 0);
  EXPECT_LT(preempted, 60) << "it thrashes";
  EXPECT_EQ(report.results[0].preempted, 0) << "the first goes on";
}

// 16 requests behind a common beginning of 20 pages, on 64 pages: without sharing three would fit.
class SharedPrefixTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<SimRequest> fleet(std::int64_t prefix_tokens) const {
    std::vector<SimRequest> requests;
    requests.push_back({.prompt = 641, .output = 4, .prefix_tokens = prefix_tokens});
    for (int i = 0; i < 16; ++i) {
      requests.push_back(
          {.arrival_s = 5, .prompt = 660, .output = 20, .prefix_tokens = prefix_tokens});
    }
    return requests;
  }
  SimOptions options_{.pages = 64};
};

TEST_P(SharedPrefixTest, AFleetBehindACachedPrefixIsAdmittedAtOnce) {
  const SimReport shared = simulate(fleet(640), options_, GetParam());
  EXPECT_EQ(shared.most_running, 16);
  // All of them within two steps of one another, though the first one is long gone.
  for (std::size_t i = 2; i < 17; ++i) {
    EXPECT_EQ(shared.results[i].preempted, 0);
    EXPECT_LT(shared.results[i].first_token_s, shared.results[1].first_token_s + 0.1);
  }
  const SimReport apart = simulate(fleet(0), options_, GetParam());
  EXPECT_LE(apart.most_running, 3) << "or the pages would have been enough without it";
}

// Prefixes of 20 pages that come and go on 48 pages: whoever waits for one finds it given up, and
// computes it itself.
TEST_P(SharedPrefixTest, PrefixesThatAreGivenUpMeanwhileStopNobody) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    options_ = {.limits = {.max_sequences = static_cast<std::int64_t>(2 + random() % 12)},
                .pages = static_cast<std::int64_t>(40 + random() % 30)};
    std::vector<SimRequest> requests;
    double at = 0;
    for (int i = 0; i < 150; ++i) {
      at += std::exponential_distribution<double>(1 + static_cast<double>(random() % 20))(random);
      const auto tenant = static_cast<std::uint32_t>(random() % 3);
      const auto prefix_tokens = static_cast<std::int64_t>(random() % 4 * 160);
      requests.push_back(
          {.arrival_s = at,
           .prompt = prefix_tokens + static_cast<std::int64_t>(1 + random() % 300),
           .output = static_cast<std::int64_t>(1 + random() % 120),
           .who = {.tenant = tenant, .priority = static_cast<std::int32_t>(random() % 5)},
           .prefix = tenant * 8 + static_cast<std::uint32_t>(random() % 2),
           .prefix_tokens = prefix_tokens});
    }
    const SimReport report = simulate(requests, options_, GetParam());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    EXPECT_GT(report.evicted, 0) << "or it tested nothing";
    for (const SimResult& result : report.results) ASSERT_GT(result.finished_s, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SharedPrefixTest, ::testing::Values("fair", "fifo"),
                         [](const auto& param) { return std::string(param.param); });

TEST(FairScheduler, PagesOfOnePrefixAreCountedOnceInAPlan) {
  std::vector<WaitingView> waiting;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    waiting.push_back({.id = SequenceId(id), .worst_case_pages = 6, .prompt_tokens = 170});
  }
  const auto admitted = [&](std::vector<std::uint32_t> idle) {
    auto scheduler = *make_scheduler("fair", {.step_target = std::chrono::seconds(1)});
    const StepPlan plan =
        scheduler->plan({.waiting = waiting, .free_pages = 9, .cached_prefix = [&](SequenceId) {
                           return CachedPrefix{5, idle};
                         }});
    return plan.admit.size();
  };
  EXPECT_EQ(admitted({0, 1, 2, 3, 4}), 4U) << "five for all, and one for each";
  EXPECT_EQ(admitted({}), 4U) << "others hold them";
}

// The preempted one held what the newcomer finds cached: its pages are free now, and not twice.
TEST(FairScheduler, PagesOfThePreemptedAreNotGivenAwayTwice) {
  const std::vector<RunningView> running = {
      {.id = SequenceId(1),
       .prompt_tokens = 32,
       .prefilled = 32,
       .worst_case_pages = 2,
       .held_pages = 1,
       .exclusive_pages = 1},
      {.id = SequenceId(2),
       .prompt_tokens = 110,
       .prefilled = 110,
       .who = {.arrival = SteadyTime(std::chrono::seconds(1))},
       .worst_case_pages = 4,
       .held_pages = 4,
       .exclusive_pages = 4}};
  const std::vector<WaitingView> waiting = {
      {.id = SequenceId(3), .worst_case_pages = 4, .prompt_tokens = 100, .who = {.priority = -1}}};
  auto scheduler = *make_scheduler("fair", {});
  const StepPlan plan =
      scheduler->plan({.waiting = waiting,
                       .running = running,
                       .free_pages = 0,
                       .now = SteadyTime(std::chrono::seconds(2)),
                       .cached_prefix = [](SequenceId) { return CachedPrefix{.pages = 3}; }});
  EXPECT_THAT(plan.preempt, ::testing::ElementsAre(SequenceId(2)));
  EXPECT_THAT(plan.admit, ::testing::IsEmpty()) << "four pages are needed, three are left";
}

TEST(FairScheduler, WorstCasesDoNotKeepOthersOut) {
  // Each may generate 1000 tokens and stops after ten.
  std::vector<SimRequest> requests;
  for (int i = 0; i < 16; ++i) {
    requests.push_back({.prompt = 20, .output = 10, .max_tokens = 1000});
  }
  SimOptions options{.pages = 64};
  EXPECT_LT(1.5 * simulate(requests, options).end_s, simulate(requests, options, "fifo").end_s);
}

TEST(FairScheduler, RefusesOnArrivalWhatCannotMeetItsDeadline) {
  std::vector<SimRequest> requests;
  for (int i = 0; i < 5; ++i) {  // what a step costs is learnt first
    requests.push_back({.arrival_s = i * 1.0, .prompt = 500, .output = 20});
  }
  for (int i = 0; i < 40; ++i) {
    requests.push_back({.arrival_s = 10, .prompt = 1000, .output = 8, .deadline_s = 4});
  }
  // Alone it would take longer than it has.
  requests.push_back({.arrival_s = 60, .prompt = 4000, .output = 1, .deadline_s = 0.2});
  requests.push_back({.arrival_s = 70, .prompt = 100, .output = 1, .deadline_s = 0.2});
  const SimReport report = simulate(requests, {});
  int met = 0;
  int refused = 0;
  int expired = 0;
  for (std::size_t i = 5; i < 45; ++i) {
    met += report.results[i].finished_s > 0;
    refused += report.results[i].refused;
    expired += report.results[i].expired;
  }
  EXPECT_GT(met, 8);
  EXPECT_GT(refused, 8);
  EXPECT_LE(expired, 6) << "work for nothing";
  EXPECT_TRUE(report.results[45].refused);
  EXPECT_GT(report.results[46].finished_s, 0);
}

TEST(FairScheduler, ManyTenantsShareFewPlaces) {
  std::vector<SimRequest> requests;
  for (int i = 0; i < 64; ++i) {
    requests.push_back({.prompt = 100, .output = 300, .who = {.tenant = 1}});
  }
  for (std::uint32_t tenant = 2; tenant < 10; ++tenant) {
    requests.push_back({.arrival_s = 1, .prompt = 50, .output = 20, .who = {.tenant = tenant}});
  }
  SimOptions options{.limits = {.max_sequences = 4}};
  const SimReport report = simulate(requests, options);
  for (std::size_t i = 64; i < requests.size(); ++i) {
    EXPECT_LT(report.results[i].finished_s, 6) << "tenant " << requests[i].who.tenant;
  }
}

// Random tenants, priorities, deadlines, sizes and very few pages: the rules hold (checked by the
// simulation in every step) and everybody ends somehow.
TEST(FairScheduler, RandomLoadKeepsTheRulesAndNobodyStarves) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    SimOptions options{.limits = {.max_sequences = static_cast<std::int64_t>(1 + random() % 12),
                                  .step_rows = static_cast<std::int64_t>(16 + random() % 256)},
                       .pages = static_cast<std::int64_t>(20 + random() % 60)};
    if (random() % 2 == 0)
      options.limits.step_target = std::chrono::milliseconds(1 + random() % 60);
    options.machine = [&](const StepCost& cost) {
      return small_model_s(cost) * (random() % 50 == 0 ? 8 : 1);
    };
    std::vector<SimRequest> requests;
    double at = 0;
    for (int i = 0; i < 120; ++i) {
      at += std::exponential_distribution<double>(1 + static_cast<double>(random() % 20))(random);
      requests.push_back({.arrival_s = at,
                          .prompt = static_cast<std::int64_t>(1 + random() % 400),
                          .output = static_cast<std::int64_t>(1 + random() % 150),
                          .who = {.tenant = static_cast<std::uint32_t>(random() % 4),
                                  .weight = 1 + static_cast<double>(random() % 3),
                                  .priority = static_cast<std::int32_t>(random() % 7) - 3},
                          .deadline_s = random() % 4 == 0 ? 2.0 : 0.0});
    }
    const SimReport report = simulate(requests, options);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (const SimResult& result : report.results) {
      ASSERT_TRUE(result.finished_s > 0 || result.refused || result.expired) << "seed " << seed;
    }
  }
}

TEST(BatchScheduler, GathersOneShotRequestsUpToSizeOrTime) {
  SimOptions options{.limits = {.batch_size = 8, .batch_wait = std::chrono::milliseconds(50)}};
  std::vector<SimRequest> requests;
  for (int i = 0; i < 8; ++i) requests.push_back({.arrival_s = i * 0.001, .prompt = 12});
  requests.push_back({.arrival_s = 1, .prompt = 12});               // alone: waits its 50 ms
  requests.push_back({.arrival_s = 2, .prompt = 12, .output = 2});  // not one-shot: at once
  const SimReport report = simulate(requests, options, "batch");
  EXPECT_GT(report.results[0].first_token_s, 0.007) << "begun when the eighth was there";
  EXPECT_LT(report.results[0].first_token_s, 0.045);
  EXPECT_LT(report.results[7].first_token_s, 0.04);
  EXPECT_GT(report.results[8].first_token_s, 0.05);
  EXPECT_LT(report.results[8].first_token_s, 0.07);
  EXPECT_LT(report.results[9].first_token_s, 0.02);
}

TEST(Policies, UnknownNameListsTheKnownOnes) {
  const auto made = make_scheduler("fiar", {});
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message(), ::testing::HasSubstr("fair"));
  EXPECT_FALSE(make_scheduler("fair", {.max_sequences = 0}).has_value());
  EXPECT_EQ(builtin_policies().size(), 3U);
}

}  // namespace
}  // namespace spud::scheduler
