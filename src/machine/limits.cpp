// SPDX-License-Identifier: Apache-2.0
#include "machine/limits.hpp"

namespace spud::machine {

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
