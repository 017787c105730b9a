// SPDX-License-Identifier: Apache-2.0
// The engine's thread and its front: requests come in through a bounded queue, cancellations
// through a flag per generation that each step looks at. Everything about a sequence belongs to the
// engine thread; the front knows only ids and flags.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "concurrency/bounded_queue.hpp"
#include "engine/engine.hpp"
#include "engine/model_engine.hpp"
#include "engine/sequence.hpp"
#include "engine/sequence_pages.hpp"
#include "engine/step_runner.hpp"
#include "kvcache/kv_cache.hpp"
#include "scheduler/scheduler.hpp"

namespace spud::engine {

struct EngineCoreOptions {
  std::int64_t context = 0;
  std::int64_t max_sequences = 0;  // running at a time
  std::int64_t max_queue = 0;      // waiting beside those that find a free place
  int num_threads = 1;
  std::int64_t logit_rows = 0;  // most of a step whose full logits are wanted
  bool prefix_cache = true;
  bool speculation = true;
};

// Thread-safe at its public functions.
class EngineCore final : public Engine {
 public:
  EngineCore(EngineParts parts, const EngineCoreOptions& options,
             std::unique_ptr<kvcache::KvCache> cache,
             std::unique_ptr<scheduler::Scheduler> scheduler);
  ~EngineCore() override;

  Result<GenerationId> submit(GenerationRequest request, GenerationSink sink) override;
  void cancel(GenerationId id) override;
  void drain(concurrency::SteadyTime deadline) override;
  const tokenizer::Tokenizer& tokenizer() const noexcept override { return *parts_.tokenizer; }
  std::int64_t context_length() const noexcept override { return options_.context; }
  EngineStats stats() const override;

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  Result<void> check(const GenerationRequest& request) const;

  // Engine thread.
  void run();
  void learn_costs();
  bool wait_for_work();
  void take_submissions();
  void add_waiting(SequencePtr sequence);
  void drop_cancelled();
  void step();
  // Plans (engine_plan.cpp).
  scheduler::StepPlan make_plan();
  scheduler::WaitingView view_waiting(Sequence& sequence) const;
  scheduler::RunningView view_running(const Sequence& sequence, bool pages_are_short) const;
  void apply(const scheduler::StepPlan& plan);
  void refuse_late(const scheduler::Refusal& refusal);
  void preempt(scheduler::SequenceId id);
  void admit(scheduler::SequenceId id);
  void attach(Sequence& sequence);
  std::vector<StepShare> collect_work(const scheduler::StepPlan& plan);
  void count_state(Sequence& sequence, bool running);
  Sequence* find(scheduler::SequenceId id) const;

  void add_guesses(StepShare& share);
  void hand_out(std::vector<StepShare>& work);
  std::int64_t accept(StepShare& share);
  void finish(Sequence& sequence, Ending ending);
  void sweep_finished();
  void publish_stats();

  EngineParts parts_;
  EngineCoreOptions options_;
  SequencePages pages_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  StepRunner runner_;

  concurrency::BoundedQueue<SequencePtr> submissions_;
  std::deque<SequencePtr> waiting_;   // in order of arrival
  std::vector<SequencePtr> running_;  // in order of arrival
  std::unordered_map<GenerationId, Sequence*> by_id_;
  std::map<std::string, std::uint32_t, std::less<>> tenant_numbers_;
  std::int64_t next_peek_ = 0;
  std::optional<concurrency::SteadyTime> wake_at_;  // nothing to do until then

  mutable std::mutex mutex_;          // guards the five below
  std::condition_variable all_done_;  // flags_ became empty
  std::unordered_map<GenerationId, std::shared_ptr<std::atomic<bool>>> flags_;  // of live ones
  std::map<std::string, TenantStats> tenants_;                                  // of live ones
  GenerationId last_id_ = 0;
  bool stopping_ = false;

  // Written by the engine thread (num_waiting also by submit), read by stats().
  struct Counters {
    std::atomic<std::int64_t> waiting{0};
    std::atomic<std::int64_t> running{0};
    std::atomic<std::int64_t> available_pages{0};
    std::atomic<std::int64_t> cached_pages{0};
    std::atomic<std::int64_t> evicted_pages{0};
    std::atomic<std::int64_t> steps{0};
    std::atomic<std::int64_t> preemptions{0};
    std::atomic<std::int64_t> refusals{0};
    std::atomic<std::int64_t> looked_up{0};
    std::atomic<std::int64_t> found{0};
    std::atomic<std::int64_t> step_target_ns{0};
    std::atomic<std::int64_t> guesses{0};
    std::atomic<std::int64_t> guesses_kept{0};
  };
  Counters counters_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace spud::engine
