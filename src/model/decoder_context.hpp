// SPDX-License-Identifier: Apache-2.0
// What one forward passes between the parts of the decoder. Internal to decoder*.cpp.
#pragma once

#include "concurrency/thread_pool.hpp"
#include "kvcache/kv_cache.hpp"
#include "model/decoder.hpp"
#include "model/workspace.hpp"

namespace spud::model {

struct Decoder::Context {
  kvcache::KvCache& cache;
  kernels::KvKernels kv;  // of the cache's type
  Workspace& ws;
  concurrency::ThreadPool& pool;
  const ActivationObserver* observer;
  bool inside_loop = false;  // of the pool, which cannot be used then
};

// Runs body(begin, end) over rows: on this thread when there is too little to share (`values` is
// about how many floats are touched per row; a barrier costs about as much as 4000 of them).
template <typename Context, typename Body>
void for_rows(const Context& context, std::int64_t num_rows, std::int64_t values,
              const Body& body) {
  constexpr std::int64_t kWorthABarrier = 8192;
  if (context.inside_loop || num_rows * values < kWorthABarrier) {
    body(std::int64_t{0}, num_rows);
    return;
  }
  const std::int64_t grain = kWorthABarrier / (2 * values) + 1;
  context.pool.parallel_for(num_rows, grain, body);
}

}  // namespace spud::model
