// SPDX-License-Identifier: Apache-2.0
// Decides what the next step of the engine does. Pure policy: it sees numbers about sequences,
// never tensors, threads or a clock of its own, so that every rule is tested by simulation and a
// better policy replaces this one without touching the engine.
//
// The default policy: decode rows first (each running sequence that has its prompt behind it gives
// one row), then prompts in chunks, first come first served, under a budget of rows per step, so
// that a long prompt never holds up those who are already talking. A sequence is admitted when a
// place and the pages for its *worst case* (prompt and all tokens it may generate) are free: it can
// then never run out of pages in the middle, and nothing is ever preempted. The price is that
// requests with a large max_tokens occupy what they may never use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/strong_id.hpp"
#include "concurrency/clock.hpp"

namespace spud::scheduler {

using SequenceId = StrongId<struct SequenceIdTag, std::uint64_t>;
using concurrency::SteadyTime;

struct SchedulerOptions {
  std::int64_t max_sequences = 32;     // running at a time
  std::int64_t step_rows = 256;        // rows of one step: decode rows and prompt chunks together
  std::int64_t min_prefill_rows = 16;  // for prompts even when decode rows fill the step
  [[nodiscard]] Result<void> validate() const;
};

// In order of arrival.
struct WaitingView {
  SequenceId id;
  std::int64_t worst_case_pages = 0;
  std::int64_t prompt_tokens = 0;
  std::optional<SteadyTime> deadline;
};

// In order of admission.
struct RunningView {
  SequenceId id;
  std::int64_t prompt_tokens = 0;
  std::int64_t prefilled = 0;  // of the prompt; equal to prompt_tokens = decoding
  std::optional<SteadyTime> deadline;
};

struct SchedulerInput {
  std::span<const WaitingView> waiting;
  std::span<const RunningView> running;
  std::int64_t free_pages = 0;
  SteadyTime now;
};

struct PrefillChunk {
  SequenceId id;
  std::int64_t num_tokens = 0;
  bool last = false;  // ends the prompt: the step samples the first token
};

struct StepPlan {
  std::vector<SequenceId> expire;  // past their deadline, waiting or running: end them first
  std::vector<SequenceId> admit;   // take their pages, in this order
  std::vector<SequenceId> decode;  // one row each
  std::vector<PrefillChunk> prefill;

  bool has_rows() const noexcept { return !decode.empty() || !prefill.empty(); }
  std::int64_t num_rows() const noexcept;
};

// What a step cost, for policies that learn from it.
struct StepCost {
  std::int64_t decode_rows = 0;
  std::int64_t prefill_rows = 0;
  std::int64_t context_tokens = 0;  // positions read by attention, over all rows
  std::chrono::nanoseconds duration{0};
};

// Engine thread only.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Admitted sequences may get prompt chunks in the same plan.
  virtual StepPlan plan(const SchedulerInput& input) = 0;
  virtual void observe(const StepCost& cost) = 0;
};

// `options` must be valid.
std::unique_ptr<Scheduler> make_fifo_scheduler(const SchedulerOptions& options);

}  // namespace spud::scheduler
