// SPDX-License-Identifier: Apache-2.0
// What a machine allows, and how near a measured speed comes to it. A step can take no less time
// than its bytes need to come from memory, and no less than its operations need at the peak; the
// larger of both is the limit that applies (the roofline). Caches may hold part of a small model,
// so a share a little above one is possible and then says just that.
#pragma once

#include <cstdint>

namespace spud::machine {

// Measured with one number of threads. 0 = not there, or not measured.
struct Rates {
  int threads = 1;
  double l2_bytes_per_s = 0;
  double l3_bytes_per_s = 0;
  double memory_bytes_per_s = 0;
  double int8_ops_per_s = 0;  // a multiplication and an addition are two
  double fp32_ops_per_s = 0;
  double barrier_s = 0;  // a spin barrier of these threads; 0 for one thread
  double loop_s = 0;     // a parallel loop of the thread pool in which all threads meet
};

struct Work {
  double bytes = 0;     // read from memory
  double int8_ops = 0;  // of matrix products
};

enum class Bound { kMemory, kCompute };

struct Limit {
  double seconds = 0;  // the least this work can take
  Bound bound = Bound::kMemory;
};

// The better of both in every figure: two measurements of one machine, before and after something.
Rates best_of(const Rates& a, const Rates& b) noexcept;
// `rates` has both figures above zero.
Limit limit_of(const Work& work, const Rates& rates) noexcept;
const char* to_string(Bound bound) noexcept;

}  // namespace spud::machine
