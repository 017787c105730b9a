// SPDX-License-Identifier: Apache-2.0
// The policy of a server with several tenants and a promise about latency.
//
// A step has a budget of time, not of rows. Decode rows go first; prompts fill the rest in chunks
// sized by a cost model that is learnt while running. Which prompt: of the tenant that got least
// for its weight (fair_queue.hpp), the most urgent one; priority counts within a tenant and is
// worth a head start in time, so nobody starves. Pages are taken as they fill: a sequence is let in
// when its prompt fits and all that run can still grow a little. When pages run out after all, the
// least urgent sequence of the tenant that holds most goes back to the queue and is computed again
// later, from what the prefix cache still has of it. Places and pages are exchanged only towards
// fairness, one for one, so that it cannot thrash. A request that would miss its deadline is
// refused when it arrives, before anything is spent on it: deadline_forecast.hpp runs the policy
// ahead over what is in front of it.
#include <algorithm>
#include <unordered_map>

#include "scheduler/deadline_forecast.hpp"
#include "scheduler/fair_plan.hpp"
#include "scheduler/length_history.hpp"
#include "scheduler/tenant_watch.hpp"

namespace spud::scheduler {
namespace {

bool passed(const std::optional<SteadyTime>& deadline, SteadyTime now) {
  return deadline.has_value() && *deadline <= now;
}

class FairScheduler final : public Scheduler {
 public:
  explicit FairScheduler(const SchedulerOptions& options) : options_(options) {}

  StepPlan plan(const SchedulerInput& input) override {
    watch_lengths(input);
    tenants_.look(input);
    internal::FairPlan plan(options_, input, model_, queue_, tenants_.shared());
    end_late(input, plan);
    plan.plan_decodes();
    plan.plan_prompts();
    for (const SequenceId id : plan.plan().preempt) last_seen_.erase(id.value);
    queue_.end_step();
    target_ = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * plan.target_s()));
    return std::move(plan).take();
  }

  void observe(const StepCost& cost) override { model_.observe(cost); }

  SchedulerStats stats() const override {
    return {.step_target = target_, .prediction_error = model_.relative_error()};
  }

 private:
  // Ends what is past its deadline, and refuses what would be: on arrival, in the order of arrival,
  // by what is in front of it; later, some in each step, when it would be late even if it were the
  // next. Who was refused is in nobody's way.
  void end_late(const SchedulerInput& input, internal::FairPlan& plan) {
    using internal::DeadlineForecast;
    DeadlineForecast forecast(options_, input, model_, queue_, lengths_, tenants_.shared());
    const auto drop = [&](SequenceId id) {
      plan.drop(id);
      forecast.drop(id);
    };
    for (const RunningView& view : input.running) {
      if (!passed(view.deadline, input.now)) continue;
      plan.plan().expire.push_back(view.id);
      last_seen_.erase(view.id.value);
      drop(view.id);
    }
    for (const WaitingView& view : input.waiting) {
      if (!passed(view.deadline, input.now)) continue;
      plan.plan().expire.push_back(view.id);
      drop(view.id);
    }
    std::int64_t arrivals = 0;
    std::int64_t looks = 0;
    for (const WaitingView& view : input.waiting) {
      const bool arrived = view.id.value > newest_.value;
      if (arrived && arrivals >= kArrivalsPerStep) break;  // the rest arrives in the next step
      newest_.value = std::max(newest_.value, view.id.value);
      if (!view.deadline || view.started || passed(view.deadline, input.now)) continue;
      if (!arrived && !(view.id.value > last_look_ && looks < kLooksPerStep)) continue;
      if (arrived) {
        ++arrivals;
      } else {
        ++looks;
        last_look_ = view.id.value;
      }
      const double left = std::chrono::duration<double>(*view.deadline - input.now).count();
      const double needed = forecast.completion_s(
          view, left, arrived ? DeadlineForecast::Turn::kInOrder : DeadlineForecast::Turn::kNext);
      if (needed <= left) continue;
      const auto expected = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * needed));
      plan.plan().refuse.push_back({.id = view.id, .expected = expected});
      drop(view.id);
    }
    if (looks < kLooksPerStep) last_look_ = 0;  // from the first one again
  }

  // Notes the lengths of answers that are complete.
  void watch_lengths(const SchedulerInput& input) {
    std::unordered_map<std::uint64_t, std::int64_t> seen;
    for (const RunningView& view : input.running) seen.emplace(view.id.value, view.generated);
    for (const auto& [id, generated] : last_seen_) {
      // What was sampled after the last look is not known; one token at least.
      if (!seen.contains(id)) lengths_.add(generated + 1);
    }
    last_seen_ = std::move(seen);
  }

  // Requests with a deadline that are judged in a step, at most: those that arrive, and those that
  // wait and are looked at again. A look costs about a tenth of a millisecond behind a queue of
  // hundreds, and every stream waits for the step.
  static constexpr std::int64_t kArrivalsPerStep = 32;
  static constexpr std::int64_t kLooksPerStep = 4;
  SchedulerOptions options_;
  CostModel model_;
  FairQueue queue_;
  SequenceId newest_;
  std::uint64_t last_look_ = 0;
  std::unordered_map<std::uint64_t, std::int64_t> last_seen_;  // tokens of running ones
  LengthHistory lengths_;
  internal::TenantWatch tenants_;
  std::chrono::nanoseconds target_{0};
};

}  // namespace

std::unique_ptr<Scheduler> make_fair_scheduler(const SchedulerOptions& options) {
  return std::make_unique<FairScheduler>(options);
}

}  // namespace spud::scheduler
