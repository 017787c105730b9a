// SPDX-License-Identifier: Apache-2.0
// Where the memory of an engine goes: what is there before any keys and values (weights, the
// buffers of a forward, logits, what sampling works in, requests), and how many pages fit beside it
// into a limit. An upper bound of what will be resident at full load, so that a limit can be kept;
// what the process holds outside of the engine is told by who knows it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "engine/engine_options.hpp"
#include "kvcache/kv_cache.hpp"
#include "model/model.hpp"

namespace spud::engine {

struct MemoryLimit {
  std::uint64_t bytes = 0;
  enum class From { kOption, kCgroup, kMachine } from = From::kMachine;
};

// The smallest of the option (0 = none), the cgroup's limit and the machine's memory.
MemoryLimit smallest_limit(std::int64_t option, std::optional<std::uint64_t> cgroup,
                           std::uint64_t machine);

struct MemoryPlan {
  std::uint64_t weights = 0;
  std::uint64_t activations = 0;  // of one forward
  std::uint64_t logits = 0;
  std::uint64_t sampling = 0;
  std::uint64_t requests = 0;  // running and waiting
  std::uint64_t reserved = 0;  // of the process, beside the engine
  std::uint64_t page_bytes = 0;
  std::uint64_t page_overhead = 0;  // what is kept about the tokens of a page
  std::uint64_t fixed() const noexcept {
    return weights + activations + logits + sampling + requests + reserved;
  }
  // Least memory with so many pages.
  std::uint64_t with_pages(std::uint64_t pages) const noexcept {
    return fixed() + pages * (page_bytes + page_overhead);
  }
};

// Rows of one step whose full logits may be wanted.
std::int64_t most_logit_rows(const EngineOptions& options);

MemoryPlan plan_memory(const model::Model& model, const EngineOptions& options,
                       const kvcache::Geometry& geometry, std::int64_t context, int threads);

// Pages of keys and values, from one full context to all sequences at full context. An error says
// which flag to change, and to what.
Result<std::size_t> choose_pages(const MemoryPlan& plan, const MemoryLimit& limit,
                                 const EngineOptions& options, std::int64_t context);

}  // namespace spud::engine
