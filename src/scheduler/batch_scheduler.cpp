// SPDX-License-Identifier: Apache-2.0
// Classic dynamic batching for one-shot work (scoring, classification: max_tokens 1): requests are
// held back until enough of them are there or the oldest has waited its time, so that the weights
// are read once for many. All else is the fair policy's, and passes at once.
#include <algorithm>
#include <vector>

#include "scheduler/scheduler.hpp"

namespace spud::scheduler {
namespace {

class BatchScheduler final : public Scheduler {
 public:
  explicit BatchScheduler(const SchedulerOptions& options)
      : options_(options), inner_(make_fair_scheduler(options)) {}

  StepPlan plan(const SchedulerInput& input) override {
    std::int64_t held = 0;
    SteadyTime oldest = SteadyTime::max();
    for (const WaitingView& view : input.waiting) {
      if (!is_held(view)) continue;
      ++held;
      oldest = std::min(oldest, view.who.arrival);
    }
    const bool open =
        held >= options_.batch_size || (held > 0 && oldest + options_.batch_wait <= input.now);
    if (open) {
      for (const WaitingView& view : input.waiting) {
        newest_released_ = std::max(newest_released_, view.id);
      }
    }
    passing_.clear();
    for (const WaitingView& view : input.waiting) {
      if (!is_held(view)) passing_.push_back(view);
    }
    SchedulerInput seen = input;
    seen.waiting = passing_;
    StepPlan plan = inner_->plan(seen);
    if (held > 0 && !open) plan.wake_at = oldest + options_.batch_wait;
    return plan;
  }

  void observe(const StepCost& cost) override { inner_->observe(cost); }
  SchedulerStats stats() const override { return inner_->stats(); }

 private:
  bool is_held(const WaitingView& view) const {
    return view.max_new_tokens == 1 && !view.started && view.id > newest_released_;
  }

  SchedulerOptions options_;
  std::unique_ptr<Scheduler> inner_;
  SequenceId newest_released_;
  std::vector<WaitingView> passing_;
};

}  // namespace

std::unique_ptr<Scheduler> make_batch_scheduler(const SchedulerOptions& options) {
  return std::make_unique<BatchScheduler>(options);
}

}  // namespace spud::scheduler
