// SPDX-License-Identifier: Apache-2.0
// Decides what the next step of the engine does. Pure policy: it sees numbers about sequences,
// never tensors, threads or a clock of its own, so that every rule is tested by simulation and a
// better policy replaces another without touching the engine. The policies are listed in
// policies.cpp; each file says what its policy promises.
//
// A plan is carried out in the order of its fields. Pages are taken as they are filled, and the
// engine does what still fits: a sequence for which no page is left sits a step out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  std::int64_t page_tokens = 32;       // positions of a KV page
  // Longest step wanted; 0 = 50 ms, or three times what decoding alone takes (16 ms, or one and a
  // half times, while several tenants are here).
  std::chrono::nanoseconds step_target{0};
  // Waiting for so long counts as much as one level of priority.
  std::chrono::nanoseconds ageing = std::chrono::seconds(1);
  // Of the policy "batch": one-shot requests are held back until so many are there, or so long.
  std::int64_t batch_size = 16;
  std::chrono::nanoseconds batch_wait = std::chrono::milliseconds(5);
  [[nodiscard]] Result<void> validate() const;
};

// Who asks, and how urgent it is.
struct SequenceClass {
  std::uint32_t tenant = 0;
  double weight = 1;          // share of the machine among tenants that want it
  std::int32_t priority = 0;  // within a tenant; lower goes first
  SteadyTime arrival;
};

// In order of arrival.
struct WaitingView {
  SequenceId id;
  std::int64_t worst_case_pages = 0;
  // To compute before the next sample; of a preempted sequence, what it had generated too.
  std::int64_t prompt_tokens = 0;
  std::optional<SteadyTime> deadline;
  SequenceClass who;
  std::int64_t cached_tokens = 0;   // at the front of prompt_tokens, already in pages: an estimate
  std::int64_t min_new_tokens = 1;  // it will not end before so many
  std::int64_t max_new_tokens = INT64_MAX;
  bool started = false;  // preempted before: has had work and may have shown output
};

// In order of arrival.
struct RunningView {
  SequenceId id;
  std::int64_t prompt_tokens = 0;
  std::int64_t prefilled = 0;  // of the prompt; equal to prompt_tokens = decoding
  std::optional<SteadyTime> deadline;
  SequenceClass who;
  std::int64_t worst_case_pages = 0;
  std::int64_t held_pages = 0;
  std::int64_t exclusive_pages = 0;  // of those, what others can have when it is preempted
  std::int64_t generated = 0;        // tokens until now
  std::int64_t min_new_tokens = 1;   // that are still to come
  std::int64_t max_new_tokens = INT64_MAX;
};

// What the prefix cache holds of a waiting sequence's prompt while the step is planned.
struct CachedPrefix {
  std::int64_t pages = 0;  // whole ones, from the front
  // Those among them that no sequence holds, by number: free to all until somebody takes them.
  std::vector<std::uint32_t> idle;
};

struct SchedulerInput {
  std::span<const WaitingView> waiting;
  std::span<const RunningView> running;
  std::int64_t free_pages = 0;  // held by nobody, or by the prefix cache alone
  SteadyTime now;
  // Asked only about those that might be admitted (it is not free). None: nothing is cached.
  std::function<CachedPrefix(SequenceId)> cached_prefix;
};

// Cannot meet its deadline: not begun at all.
struct Refusal {
  SequenceId id;
  std::chrono::nanoseconds expected{0};  // until it would have been complete
};

struct PrefillChunk {
  SequenceId id;
  std::int64_t num_tokens = 0;
  bool last = false;  // ends the prompt: the step samples the first token
};

struct StepPlan {
  std::vector<SequenceId> expire;  // past their deadline, waiting or running
  std::vector<Refusal> refuse;
  std::vector<SequenceId> preempt;  // running ones back to the queue; their pages are given up
  std::vector<SequenceId> admit;    // in this order
  std::vector<SequenceId> decode;   // one row each
  std::vector<PrefillChunk> prefill;
  std::optional<SteadyTime> wake_at;  // without rows: plan again then, or when something arrives

  bool has_rows() const noexcept { return !decode.empty() || !prefill.empty(); }
  std::int64_t num_rows() const noexcept;
};

// What a step cost, for policies that learn from it.
struct StepCost {
  std::int64_t decode_rows = 0;  // rows that sample, those that end a prompt included
  std::int64_t prefill_rows = 0;
  std::int64_t context_tokens = 0;  // positions read by attention, over all rows
  std::chrono::nanoseconds duration{0};
};

struct SchedulerStats {
  std::chrono::nanoseconds step_target{0};  // of the latest step; 0 = the policy has none
  double prediction_error = 0;              // typical, relative
};

// Engine thread only.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Admitted sequences may get prompt chunks in the same plan.
  virtual StepPlan plan(const SchedulerInput& input) = 0;
  virtual void observe(const StepCost& cost) = 0;
  virtual SchedulerStats stats() const { return {}; }
};

// `options` must be valid.
std::unique_ptr<Scheduler> make_fifo_scheduler(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_fair_scheduler(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_batch_scheduler(const SchedulerOptions& options);

}  // namespace spud::scheduler
