// SPDX-License-Identifier: Apache-2.0
// Between the engine and its policy: what the scheduler is shown, and how its plan is carried out.
#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "engine/engine_core.hpp"
#include "kernels/kernel_table.hpp"

namespace spud::engine {
namespace {

// Waiting sequences whose cached prefix is looked up again in each step (a hash per page).
constexpr std::int64_t kPeeksPerStep = 16;

std::int64_t pages_for(std::int64_t tokens) {
  return static_cast<std::int64_t>(kvcache::pages_for(static_cast<std::size_t>(tokens)));
}

scheduler::SequenceClass class_of(const Sequence& sequence) {
  return {.tenant = sequence.tenant,
          .weight = sequence.request().weight,
          .priority = sequence.request().priority,
          .arrival = sequence.submitted};
}

// Tokens; all that it may have where nothing can end it earlier.
std::int64_t least_to_come(const Sequence& sequence) {
  if (!sequence.request().ignore_eos || !sequence.request().stop.empty()) return 1;
  return sequence.request().max_tokens - sequence.completion_tokens();
}

}  // namespace

scheduler::WaitingView EngineCore::view_waiting(Sequence& sequence) const {
  return {.id = scheduler::SequenceId(sequence.id()),
          .worst_case_pages = pages_for(sequence.worst_case_tokens()),
          .prompt_tokens = sequence.pending(),
          .deadline = sequence.request().deadline,
          .who = class_of(sequence),
          .cached_tokens = sequence.cached_estimate,
          .min_new_tokens = least_to_come(sequence),
          .max_new_tokens = sequence.request().max_tokens - sequence.completion_tokens(),
          .started = sequence.started.has_value()};
}

scheduler::RunningView EngineCore::view_running(const Sequence& sequence,
                                                bool pages_are_short) const {
  const std::int64_t held = std::ssize(sequence.pages.pages);
  const std::int64_t known = sequence.computed + sequence.pending();
  return {.id = scheduler::SequenceId(sequence.id()),
          .prompt_tokens = sequence.decoding() ? sequence.computed : known,
          .prefilled = sequence.computed,
          .deadline = sequence.request().deadline,
          .who = class_of(sequence),
          .worst_case_pages = pages_for(sequence.worst_case_tokens()),
          .held_pages = held,
          // Only a policy that is short of pages asks; else an upper bound will do.
          .exclusive_pages = pages_are_short ? pages_.num_exclusive(sequence) : held,
          .generated = sequence.completion_tokens(),
          .min_new_tokens = least_to_come(sequence),
          .max_new_tokens = sequence.request().max_tokens - sequence.completion_tokens()};
}

scheduler::StepPlan EngineCore::make_plan() {
  std::vector<scheduler::WaitingView> waiting;
  std::vector<scheduler::RunningView> running;
  waiting.reserve(waiting_.size());
  running.reserve(running_.size());
  // What others computed in the meantime, this one need not.
  for (const SequencePtr& sequence : running_) {
    if (!sequence->decoding()) attach(*sequence);
  }
  const std::int64_t num_waiting = std::ssize(waiting_);
  for (std::int64_t i = 0; i < std::min(num_waiting, kPeeksPerStep); ++i) {
    Sequence& sequence = *waiting_[static_cast<std::size_t>(next_peek_++ % num_waiting)];
    sequence.cached_estimate = pages_.peek(sequence);
  }
  for (const SequencePtr& sequence : waiting_) waiting.push_back(view_waiting(*sequence));
  const bool pages_are_short =
      pages_.num_available() < 2 * std::ssize(running_) + pages_.num_total() / 8;
  for (const SequencePtr& sequence : running_) {
    running.push_back(view_running(*sequence, pages_are_short));
  }
  return scheduler_->plan({.waiting = waiting,
                           .running = running,
                           .free_pages = pages_.num_available(),
                           .now = parts_.clock->now(),
                           .cached_prefix = [this](scheduler::SequenceId id) {
                             return pages_.cached_prefix(*find(id));
                           }});
}

void EngineCore::apply(const scheduler::StepPlan& plan) {
  for (const scheduler::SequenceId id : plan.expire) {
    finish(*find(id), {.reason = FinishReason::kError,
                       .error = Error(ErrorCode::kDeadlineExceeded,
                                      "the request's deadline passed before it was complete")});
  }
  for (const scheduler::Refusal& refusal : plan.refuse) refuse_late(refusal);
  sweep_finished();
  for (const scheduler::SequenceId id : plan.preempt) preempt(id);
  for (const scheduler::SequenceId id : plan.admit) admit(id);
}

void EngineCore::refuse_late(const scheduler::Refusal& refusal) {
  Sequence& sequence = *find(refusal.id);
  using Seconds = std::chrono::duration<double>;
  const auto left = *sequence.request().deadline - parts_.clock->now();
  ++counters_.refusals;
  finish(sequence,
         {.reason = FinishReason::kError,
          .error = Error(ErrorCode::kUnavailable,
                         fmt::format("the request would take about {:.3g} s from now, and its "
                                     "deadline is in {:.3g} s; try again later or allow more time",
                                     Seconds(refusal.expected).count(), Seconds(left).count())),
          .retry_after = refusal.expected});
}

// Back to its place in the queue. Its full pages stay in the prefix cache as long as nobody needs
// them, so that what is lost may be little.
void EngineCore::preempt(scheduler::SequenceId id) {
  const auto at = std::ranges::find(running_, id.value, &Sequence::id);
  SPUD_CHECK(at != running_.end());
  SequencePtr sequence = std::move(*at);
  running_.erase(at);
  pages_.release(*sequence);
  sequence->preempted = true;
  sequence->cached_estimate = pages_.peek(*sequence);
  count_state(*sequence, /*running=*/false);
  ++counters_.preemptions;
  const auto place = std::ranges::upper_bound(waiting_, sequence->id(), {}, &Sequence::id);
  waiting_.insert(place, std::move(sequence));
}

void EngineCore::admit(scheduler::SequenceId id) {
  const auto at = std::ranges::find(waiting_, id.value, &Sequence::id);
  SPUD_CHECK(at != waiting_.end());
  SequencePtr sequence = std::move(*at);
  waiting_.erase(at);
  if (!sequence->started) {
    sequence->started = parts_.clock->now();
    if (!sequence->scores_prompt()) counters_.looked_up += sequence->prompt_tokens();
  }
  attach(*sequence);
  count_state(*sequence, /*running=*/true);
  const auto place = std::ranges::upper_bound(running_, sequence->id(), {}, &Sequence::id);
  running_.insert(place, std::move(sequence));
}

void EngineCore::attach(Sequence& sequence) {
  const std::int64_t found = pages_.attach(sequence);
  // What is found after a preemption was computed here before.
  if (found == 0 || sequence.preempted) return;
  sequence.cached_prompt_tokens += found;
  counters_.found += found;
}

void EngineCore::count_state(Sequence& sequence, bool running) {
  if (sequence.running == running) return;
  sequence.running = running;
  counters_.running += running ? 1 : -1;
  counters_.waiting += running ? -1 : 1;
  const std::scoped_lock lock(mutex_);
  TenantStats& tenant = tenants_[sequence.request().tenant];
  tenant.running += running ? 1 : -1;
  tenant.waiting += running ? -1 : 1;
}

// Takes the pages that each share needs. Without one it is left out; the scheduler sees next time
// how it stands.
std::vector<StepShare> EngineCore::collect_work(const scheduler::StepPlan& plan) {
  std::vector<StepShare> work;
  work.reserve(plan.decode.size() + plan.prefill.size());
  const auto add = [&](scheduler::SequenceId id, std::int64_t wanted) {
    Sequence* sequence = find(id);
    if (sequence == nullptr || !sequence->running) return;
    const std::int64_t count = std::min(wanted, sequence->pending());
    if (!pages_.make_room(*sequence, count)) return;
    work.push_back(
        {.sequence = sequence, .num_tokens = count, .samples = count == sequence->pending()});
  };
  for (const scheduler::SequenceId id : plan.decode) add(id, 1);
  if (options_.speculation && plan.prefill.empty() &&
      std::ssize(work) <= StepRunner::kMostSpeculating) {
    for (StepShare& share : work) add_guesses(share);
  }
  for (const scheduler::PrefillChunk& chunk : plan.prefill) add(chunk.id, chunk.num_tokens);
  return work;
}

void EngineCore::add_guesses(StepShare& share) {
  Sequence& sequence = *share.sequence;
  if (!sequence.decoding()) return;
  const std::int64_t most = sequence.request().max_tokens - sequence.completion_tokens() - 1;
  std::vector<TokenId> guesses = sequence.draft.propose(sequence.tokens(), most);
  if (guesses.empty() || !pages_.make_room(sequence, 1 + std::ssize(guesses))) return;
  share.speculative = {sequence.tokens().back()};
  share.speculative.insert(share.speculative.end(), guesses.begin(), guesses.end());
}

Sequence* EngineCore::find(scheduler::SequenceId id) const {
  const auto at = by_id_.find(id.value);
  return at == by_id_.end() ? nullptr : at->second;
}

}  // namespace spud::engine
