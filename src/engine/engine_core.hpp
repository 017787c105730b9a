// SPDX-License-Identifier: Apache-2.0
// The engine's thread and its front: requests come in through a bounded queue, cancellations
// through a flag per generation that each step looks at. Everything about a sequence belongs to the
// engine thread; the front knows only ids and flags.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "concurrency/bounded_queue.hpp"
#include "engine/engine.hpp"
#include "engine/model_engine.hpp"
#include "engine/sequence.hpp"
#include "engine/step_runner.hpp"
#include "kvcache/kv_cache.hpp"
#include "scheduler/scheduler.hpp"

namespace spud::engine {

struct EngineCoreLimits {
  std::int64_t context = 0;
  std::int64_t max_queue = 0;
};

// Thread-safe at its public functions.
class EngineCore final : public Engine {
 public:
  EngineCore(EngineParts parts, const EngineCoreLimits& limits,
             std::unique_ptr<kvcache::KvCache> cache,
             std::unique_ptr<scheduler::Scheduler> scheduler, int num_threads);
  ~EngineCore() override;

  Result<GenerationId> submit(GenerationRequest request, GenerationSink sink) override;
  void cancel(GenerationId id) override;
  void drain(concurrency::SteadyTime deadline) override;
  const tokenizer::Tokenizer& tokenizer() const noexcept override { return *parts_.tokenizer; }
  std::int64_t context_length() const noexcept override { return limits_.context; }
  EngineStats stats() const override;

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  Result<void> check(const GenerationRequest& request) const;

  // Engine thread.
  void run();
  bool wait_for_work();
  void take_submissions();
  void drop_cancelled();
  void step();
  scheduler::StepPlan make_plan();
  void apply(const scheduler::StepPlan& plan);
  std::vector<StepWork> collect_work(const scheduler::StepPlan& plan);
  void hand_out(std::vector<StepWork>& work);
  void finish(Sequence& sequence, Ending ending);
  void sweep_finished();
  Sequence* find_running(GenerationId id) const;

  EngineParts parts_;
  EngineCoreLimits limits_;
  std::unique_ptr<kvcache::KvCache> cache_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  StepRunner runner_;

  concurrency::BoundedQueue<SequencePtr> submissions_;
  std::deque<SequencePtr> waiting_;
  std::vector<SequencePtr> running_;

  mutable std::mutex mutex_;          // guards the four below
  std::condition_variable all_done_;  // flags_ became empty
  std::unordered_map<GenerationId, std::shared_ptr<std::atomic<bool>>> flags_;  // of live ones
  GenerationId last_id_ = 0;
  bool stopping_ = false;

  // Written by the engine thread (num_waiting_ also by submit), read by stats().
  std::atomic<std::int64_t> num_waiting_{0};
  std::atomic<std::int64_t> num_running_{0};
  std::atomic<std::int64_t> free_pages_{0};
  std::atomic<std::int64_t> num_steps_{0};

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace spud::engine
