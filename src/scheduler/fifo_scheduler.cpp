// SPDX-License-Identifier: Apache-2.0
// First come, first served: decode rows first (each running sequence that has its prompt behind it
// gives one row), then prompts in chunks in order of arrival, under a budget of rows per step, so
// that a long prompt never holds up those who are already talking. A sequence is admitted when a
// place and the pages for its worst case (prompt and all tokens it may generate) are free: it can
// then never run out of pages in the middle, and nothing is ever preempted. The price is that
// requests with a large max_tokens keep others out for what they may never use.
#include <algorithm>

#include "scheduler/prefix_claims.hpp"
#include "scheduler/scheduler.hpp"

namespace spud::scheduler {
namespace {

bool expired(const std::optional<SteadyTime>& deadline, SteadyTime now) {
  return deadline.has_value() && *deadline <= now;
}

class FifoScheduler final : public Scheduler {
 public:
  explicit FifoScheduler(const SchedulerOptions& options) : options_(options) {}

  StepPlan plan(const SchedulerInput& input) override {
    StepPlan plan;
    std::int64_t running = 0;
    std::int64_t rows = 0;
    for (const RunningView& sequence : input.running) {
      if (expired(sequence.deadline, input.now)) {
        plan.expire.push_back(sequence.id);
        continue;
      }
      ++running;
      if (sequence.prefilled < sequence.prompt_tokens) continue;
      plan.decode.push_back(sequence.id);
      ++rows;
    }
    std::int64_t budget = std::max(options_.step_rows - rows, options_.min_prefill_rows);
    const auto add_prefill = [&](SequenceId id, std::int64_t left) {
      const std::int64_t take = std::min(left, budget);
      if (take <= 0) return;
      plan.prefill.push_back({.id = id, .num_tokens = take, .last = take == left});
      budget -= take;
    };
    for (const RunningView& sequence : input.running) {
      if (expired(sequence.deadline, input.now)) continue;
      add_prefill(sequence.id, sequence.prompt_tokens - sequence.prefilled);
    }
    admit(input, running, plan, add_prefill);
    return plan;
  }

  void observe(const StepCost&) override {}  // this policy counts rows, not time

 private:
  // Strictly in order: the first that does not fit keeps the others waiting, or a large request
  // would starve behind small ones. Pages of sequences that expire now are free in the next step.
  template <typename AddPrefill>
  void admit(const SchedulerInput& input, std::int64_t running, StepPlan& plan,
             const AddPrefill& add_prefill) const {
    std::int64_t free_pages = input.free_pages;
    for (const RunningView& sequence : input.running) {  // promised, not yet taken
      free_pages -= std::max<std::int64_t>(sequence.worst_case_pages - sequence.held_pages, 0);
    }
    bool open = true;
    internal::PrefixClaims claims;
    for (const WaitingView& sequence : input.waiting) {
      if (expired(sequence.deadline, input.now)) {
        plan.expire.push_back(sequence.id);
        continue;
      }
      open = open && running < options_.max_sequences;
      if (!open) continue;
      const CachedPrefix cached =
          input.cached_prefix ? input.cached_prefix(sequence.id) : CachedPrefix{};
      const std::int64_t pages = sequence.worst_case_pages - cached.pages + claims.cost(cached);
      open = pages <= free_pages;
      if (!open) continue;
      plan.admit.push_back(sequence.id);
      free_pages -= pages;
      claims.claim(cached);
      ++running;
      add_prefill(sequence.id, sequence.prompt_tokens - cached.pages * options_.page_tokens);
    }
  }

  SchedulerOptions options_;
};

}  // namespace

std::int64_t StepPlan::num_rows() const noexcept {
  auto rows = static_cast<std::int64_t>(decode.size());
  for (const PrefillChunk& chunk : prefill) rows += chunk.num_tokens;
  return rows;
}

Result<void> SchedulerOptions::validate() const {
  if (max_sequences < 1) {
    return fail(ErrorCode::kInvalidArgument, "max_sequences is {}; it must be at least 1",
                max_sequences);
  }
  if (min_prefill_rows < 1 || step_rows < min_prefill_rows) {
    return fail(
        ErrorCode::kInvalidArgument,
        "step_rows is {} and min_prefill_rows {}: a step needs at least one prompt row, and "
        "the whole is no less than its part",
        step_rows, min_prefill_rows);
  }
  if (page_tokens < 1 || batch_size < 1 || step_target.count() < 0 || ageing.count() < 1 ||
      batch_wait.count() < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "a page of {} tokens, batches of {}: both need at least 1, and no time may be "
                "negative",
                page_tokens, batch_size);
  }
  return {};
}

std::unique_ptr<Scheduler> make_fifo_scheduler(const SchedulerOptions& options) {
  return std::make_unique<FifoScheduler>(options);
}

}  // namespace spud::scheduler
