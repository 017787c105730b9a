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
// refused when it arrives, before anything is spent on it.
#include <algorithm>
#include <unordered_map>

#include "scheduler/fair_plan.hpp"

namespace spud::scheduler {
namespace {

bool passed(const std::optional<SteadyTime>& deadline, SteadyTime now) {
  return deadline.has_value() && *deadline <= now;
}

class FairScheduler final : public Scheduler {
 public:
  explicit FairScheduler(const SchedulerOptions& options) : options_(options) {}

  StepPlan plan(const SchedulerInput& input) override {
    watch_residence(input);
    internal::FairPlan plan(options_, input, model_, queue_);
    end_late(input, plan);
    plan.plan_decodes();
    plan.plan_prompts();
    queue_.end_step();
    target_ = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * plan.target_s()));
    return std::move(plan).take();
  }

  void observe(const StepCost& cost) override { model_.observe(cost); }

  SchedulerStats stats() const override {
    return {.step_target = target_, .prediction_error = model_.relative_error()};
  }

 private:
  // Ends what is past its deadline, and refuses what would be: on arrival if those in front leave
  // too little time, later only when it could not make it even alone.
  void end_late(const SchedulerInput& input, internal::FairPlan& plan) {
    for (const RunningView& view : input.running) {
      if (passed(view.deadline, input.now)) expire(view.id, plan);
    }
    for (const WaitingView& view : input.waiting) {
      const bool arrived = view.id.value > newest_.value;
      newest_.value = std::max(newest_.value, view.id.value);
      if (!view.deadline) continue;
      if (passed(view.deadline, input.now)) {
        expire(view.id, plan);
        continue;
      }
      if (view.started) continue;
      const double left = std::chrono::duration<double>(*view.deadline - input.now).count();
      double needed = plan.service_s(view);
      if (arrived && needed <= left) needed += plan.queueing_s(view, residence_s_);
      if (needed <= left) continue;
      const auto expected = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * needed));
      plan.plan().refuse.push_back({.id = view.id, .expected = expected});
      plan.drop(view.id);
    }
  }

  static void expire(SequenceId id, internal::FairPlan& plan) {
    plan.plan().expire.push_back(id);
    plan.drop(id);
  }

  // How long a sequence holds its place, as a running mean.
  void watch_residence(const SchedulerInput& input) {
    constexpr double kRate = 0.1;
    std::unordered_map<std::uint64_t, SteadyTime> still;
    for (const RunningView& view : input.running) {
      const auto known = since_.find(view.id.value);
      still.emplace(view.id.value, known == since_.end() ? input.now : known->second);
    }
    for (const auto& [id, since] : since_) {
      if (still.contains(id)) continue;
      const double seconds = std::chrono::duration<double>(input.now - since).count();
      residence_s_ += (residence_s_ == 0 ? 1 : kRate) * (seconds - residence_s_);
    }
    since_ = std::move(still);
  }

  SchedulerOptions options_;
  CostModel model_;
  FairQueue queue_;
  SequenceId newest_;
  std::unordered_map<std::uint64_t, SteadyTime> since_;  // of running ones
  double residence_s_ = 0;
  std::chrono::nanoseconds target_{0};
};

}  // namespace

std::unique_ptr<Scheduler> make_fair_scheduler(const SchedulerOptions& options) {
  return std::make_unique<FairScheduler>(options);
}

}  // namespace spud::scheduler
