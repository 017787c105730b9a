// SPDX-License-Identifier: Apache-2.0
#include "stats/robust.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spud::stats {

double quantile_of_sorted(std::span<const double> sorted, double q) noexcept {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = place - static_cast<double>(below);
  return sorted[below] + weight * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) noexcept {
  std::ranges::sort(values);
  return quantile_of_sorted(values, 0.5);
}

double scaled_mad(std::span<const double> values) {
  const double centre = median({values.begin(), values.end()});
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - centre));
  return 1.4826 * median(std::move(deviations));
}

}  // namespace spud::stats
