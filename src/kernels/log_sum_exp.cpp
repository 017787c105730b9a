// SPDX-License-Identifier: Apache-2.0
#include "kernels/log_sum_exp.hpp"

#include <algorithm>
#include <cmath>

namespace spud::kernels {

void LogSumExp::add(ExpSum tile) noexcept {
  const auto shift = [](float from, float to) {
    return std::exp(static_cast<double>(from) - static_cast<double>(to));
  };
  if (tile.max > max_) {
    total_ = total_ * shift(max_, tile.max) + static_cast<double>(tile.sum);
    max_ = tile.max;
  } else if (std::isfinite(tile.max)) {
    total_ += static_cast<double>(tile.sum) * shift(tile.max, max_);
  }
}

float LogSumExp::value() const noexcept {
  return std::isfinite(max_) ? max_ + static_cast<float>(std::log(total_)) : max_;
}

float log_sum_exp(const KernelTable& kernels, const float* x, std::int64_t n) noexcept {
  LogSumExp sum;
  for (std::int64_t i = 0; i < n; i += kLogitTile) {
    sum.add(kernels.exp_sum(x + i, std::min(kLogitTile, n - i)));
  }
  return sum.value();
}

}  // namespace spud::kernels
