// SPDX-License-Identifier: Apache-2.0
// Full logits of given text, for quality measurements. The real one runs the same forward as the
// server (same kernels, same KV), so that what is proved is what is served.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "concurrency/thread_pool.hpp"
#include "model/model.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::engine {

// position p: logits predict token p + 1. Valid during the call.
using LogitsVisitor = std::function<void(std::int64_t position, std::span<const float> logits)>;

class Scorer {
 public:
  virtual ~Scorer() = default;
  // Calls `visit` for positions first_position .. tokens.size() - 1, in order.
  // kInvalidArgument when the text is empty, has an id out of range, or exceeds the context.
  [[nodiscard]] virtual Result<void> score(std::span<const tokenizer::TokenId> tokens,
                                           std::int64_t first_position,
                                           const LogitsVisitor& visit) = 0;
  virtual void set_observer(const model::ActivationObserver* observer) = 0;  // null = none
  virtual std::int64_t vocabulary_size() const noexcept = 0;
};

// Keeps its own small KV cache. Not thread-safe; `pool` must outlive it.
[[nodiscard]] Result<std::unique_ptr<Scorer>> make_scorer(
    std::shared_ptr<const model::Model> model, concurrency::ThreadPool& pool,
    kernels::KvType kv_type = kernels::kDefaultKvType);

}  // namespace spud::engine
