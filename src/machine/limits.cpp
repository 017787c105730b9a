// SPDX-License-Identifier: Apache-2.0
#include "machine/limits.hpp"

#include <algorithm>

namespace spud::machine {

Rates best_of(const Rates& a, const Rates& b) noexcept {
  return {.threads = a.threads,
          .l2_bytes_per_s = std::max(a.l2_bytes_per_s, b.l2_bytes_per_s),
          .l3_bytes_per_s = std::max(a.l3_bytes_per_s, b.l3_bytes_per_s),
          .memory_bytes_per_s = std::max(a.memory_bytes_per_s, b.memory_bytes_per_s),
          .int8_ops_per_s = std::max(a.int8_ops_per_s, b.int8_ops_per_s),
          .fp32_ops_per_s = std::max(a.fp32_ops_per_s, b.fp32_ops_per_s),
          .barrier_s = std::min(a.barrier_s, b.barrier_s),
          .loop_s = std::min(a.loop_s, b.loop_s)};
}

Limit limit_of(const Work& work, const Rates& rates) noexcept {
  const double memory = work.bytes / rates.memory_bytes_per_s;
  const double compute = work.int8_ops / rates.int8_ops_per_s;
  if (compute > memory) return {.seconds = compute, .bound = Bound::kCompute};
  return {.seconds = memory, .bound = Bound::kMemory};
}

const char* to_string(Bound bound) noexcept {
  return bound == Bound::kMemory ? "memory" : "compute";
}

}  // namespace spud::machine
