// SPDX-License-Identifier: Apache-2.0
// log(sum(exp(x))) of a row of logits, tile by tile in order of tiles: the same bits whether the
// row stands in memory or its tiles were reduced as they were computed, on any number of threads.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/kernel_table.hpp"

namespace spud::kernels {

class LogSumExp {
 public:
  // The next tile.
  void add(ExpSum tile) noexcept;
  float value() const noexcept;  // the maximum itself when that is not finite

 private:
  float max_ = -std::numeric_limits<float>::infinity();
  double total_ = 0;  // 262,144 terms cost no precision
};

float log_sum_exp(const KernelTable& kernels, const float* x, std::int64_t n) noexcept;

}  // namespace spud::kernels
