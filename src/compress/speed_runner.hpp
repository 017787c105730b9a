// SPDX-License-Identifier: Apache-2.0
// One timed run of a loaded model: a prompt in one go, then tokens one by one. The text is fixed,
// nothing is sampled: what is compared is the forward.
#pragma once

#include <memory>
#include <vector>

#include "compress/speed.hpp"
#include "concurrency/thread_pool.hpp"
#include "kvcache/kv_cache.hpp"
#include "model/model.hpp"

namespace spud::compress {

// Not thread-safe. `pool` must outlive it.
class SpeedRunner {
 public:
  // `text` is repeated to the length needed; the model's context must hold prompt and decode.
  [[nodiscard]] static Result<SpeedRunner> create(std::shared_ptr<const model::Model> model,
                                                  concurrency::ThreadPool& pool,
                                                  std::span<const model::TokenId> text,
                                                  const SpeedPlan& plan);
  [[nodiscard]] Result<SpeedSample> run();

 private:
  SpeedRunner(std::shared_ptr<const model::Model> model, concurrency::ThreadPool& pool,
              std::unique_ptr<kvcache::KvCache> cache, std::vector<model::TokenId> tokens,
              std::int64_t prefill_tokens);
  double timed_forward(kvcache::BlockTable& pages, std::int64_t first, std::int64_t count);

  std::shared_ptr<const model::Model> model_;
  concurrency::ThreadPool* pool_;
  std::unique_ptr<kvcache::KvCache> cache_;
  std::shared_ptr<model::Model::Workspace> workspace_;
  std::vector<model::TokenId> tokens_;
  std::int64_t prefill_tokens_;
  std::vector<float> logits_;
};

}  // namespace spud::compress
