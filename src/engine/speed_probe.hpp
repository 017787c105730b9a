// SPDX-License-Identifier: Apache-2.0
// How fast a model runs in this process: the same forward as the server, without queues, text or
// clients. One run gives one sample; repeating, comparing and printing are the caller's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "concurrency/clock.hpp"
#include "concurrency/thread_pool.hpp"
#include "kvcache/kv_cache.hpp"
#include "model/model.hpp"

namespace spud::engine {

// Greedy decoding of pseudo-random prompts. Not thread-safe; pool and clock must outlive it.
class SpeedProbe {
 public:
  // `max_tokens`: the longest context of one stream, at most the model's.
  [[nodiscard]] static Result<std::unique_ptr<SpeedProbe>> create(
      std::shared_ptr<const model::Model> model, concurrency::ThreadPool& pool,
      const concurrency::Clock& clock, std::int64_t max_streams, std::int64_t max_tokens,
      kernels::KvType kv_type = kernels::kDefaultKvType);

  struct Run {
    std::chrono::nanoseconds time{0};
    std::chrono::nanoseconds products{0};  // of it, in loops over weights
  };
  // One prompt of `tokens`, logits of the last.
  Run prefill(std::int64_t tokens);
  // `streams` sequences that have `depth` tokens behind them each generate `tokens`; the time of
  // the generating steps, head and argmax included.
  Run decode(std::int64_t streams, std::int64_t depth, std::int64_t tokens);

 private:
  struct Stream {
    kvcache::BlockTable pages;
    model::TokenId last = 0;
    model::LogitSummary output;  // greedy: the most likely token
  };
  SpeedProbe(std::shared_ptr<const model::Model> model, concurrency::ThreadPool& pool,
             const concurrency::Clock& clock, std::unique_ptr<kvcache::KvCache> cache);
  void start(std::int64_t streams, std::int64_t total_tokens);
  template <typename Body>
  Run timed(const Body& body);
  void feed_prompt(Stream& stream, std::int64_t tokens);
  void step(std::int64_t position);

  std::shared_ptr<const model::Model> model_;
  concurrency::ThreadPool& pool_;
  const concurrency::Clock& clock_;
  std::unique_ptr<kvcache::KvCache> cache_;
  std::shared_ptr<model::Model::Workspace> workspace_;
  std::vector<Stream> streams_;
  std::vector<model::SequenceSlice> batch_;
};

}  // namespace spud::engine
