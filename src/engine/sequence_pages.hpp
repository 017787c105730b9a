// SPDX-License-Identifier: Apache-2.0
// The KV pages of sequences: taken as they are filled, found in the prefix cache where somebody
// filled them before, made known there once full, and given back in one way however a sequence
// ends. The engine asks this, never the KV cache itself.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/sequence.hpp"
#include "kvcache/kv_cache.hpp"
#include "kvcache/prefix_cache.hpp"
#include "scheduler/scheduler.hpp"

namespace spud::engine {

// Engine thread only.
class SequencePages {
 public:
  SequencePages(std::unique_ptr<kvcache::KvCache> cache, bool prefix_cache);

  kvcache::KvCache& cache() noexcept { return *cache_; }
  std::int64_t num_total() const noexcept;
  std::int64_t page_bytes() const noexcept;
  std::int64_t num_available() const noexcept;  // free, or held by the prefix cache alone
  std::int64_t num_cached() const noexcept;
  std::int64_t num_evicted() const noexcept;

  // Tokens of `sequence` that attach() would find.
  std::int64_t peek(const Sequence& sequence) const;
  scheduler::CachedPrefix cached_prefix(const Sequence& sequence) const;
  // Moves `computed` on over what is cached. Returns the tokens found.
  std::int64_t attach(Sequence& sequence);
  // Pages for `num_tokens` more tokens, at the cost of what the prefix cache holds. False = none.
  [[nodiscard]] bool make_room(Sequence& sequence, std::int64_t num_tokens);
  void publish(Sequence& sequence);  // its full pages, after a step
  void release(Sequence& sequence);  // all of them; it starts again from nothing
  // Pages that others could have if it were released.
  std::int64_t num_exclusive(const Sequence& sequence) const;

 private:
  std::unique_ptr<kvcache::KvCache> cache_;
  std::unique_ptr<kvcache::PrefixCache> prefix_;  // null = off; after the cache it holds pages of
};

}  // namespace spud::engine
