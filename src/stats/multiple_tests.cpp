// SPDX-License-Identifier: Apache-2.0
#include "stats/multiple_tests.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace spud::stats {

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(scaled, 1.0));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

}  // namespace spud::stats
