// SPDX-License-Identifier: Apache-2.0
#include "stats/sequential.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "stats/distributions.hpp"

namespace spud::stats {
namespace {

constexpr int kGrid = 240;     // intervals of Simpson's rule; even
constexpr double kFloor = -8;  // in standard deviations of the look: below it there is nothing

double density(double x, double variance) noexcept {
  return std::exp(-0.5 * x * x / variance) / std::sqrt(2 * std::numbers::pi * variance);
}

// Points and Simpson weights over [low, high].
struct Grid {
  std::vector<double> at;
  std::vector<double> weight;
  Grid(double low, double high) : at(kGrid + 1), weight(kGrid + 1) {
    const double step = (high - low) / kGrid;
    for (int i = 0; i <= kGrid; ++i) {
      const auto slot = static_cast<std::size_t>(i);
      at[slot] = low + step * i;
      weight[slot] = step / 3 * (i == 0 || i == kGrid ? 1 : (i % 2 == 1 ? 4 : 2));
    }
  }
};

}  // namespace

double crossing_probability(std::span<const double> information, std::span<const double> z) {
  SPUD_CHECK(information.size() == z.size() && !z.empty());
  double crossed = 1 - normal_cdf(z[0]);
  double before = information[0];
  Grid grid(kFloor * std::sqrt(before), z[0] * std::sqrt(before));
  std::vector<double> held(grid.at.size());  // density of not having crossed, at the grid's points
  for (std::size_t i = 0; i < held.size(); ++i) held[i] = density(grid.at[i], before);

  for (std::size_t look = 1; look < z.size(); ++look) {
    const double variance = information[look] - before;
    const double bound = z[look] * std::sqrt(information[look]);
    for (std::size_t i = 0; i < held.size(); ++i) {
      crossed +=
          grid.weight[i] * held[i] * (1 - normal_cdf((bound - grid.at[i]) / std::sqrt(variance)));
    }
    const Grid next(kFloor * std::sqrt(information[look]), bound);
    std::vector<double> moved(next.at.size(), 0.0);
    for (std::size_t j = 0; look + 1 < z.size() && j < moved.size(); ++j) {
      for (std::size_t i = 0; i < held.size(); ++i) {
        moved[j] += grid.weight[i] * held[i] * density(next.at[j] - grid.at[i], variance);
      }
    }
    grid = next;
    held = std::move(moved);
    before = information[look];
  }
  return crossed;
}

std::vector<double> look_levels(std::span<const double> information, double alpha,
                                BoundaryShape shape) {
  SPUD_CHECK(!information.empty() && information.size() <= 10 && alpha > 0 && alpha < 0.5);
  SPUD_CHECK(std::ranges::is_sorted(information, std::less_equal<>()) && information[0] > 0);
  const auto bounds_for = [&](double c) {
    std::vector<double> z;
    for (const double share : information) {
      z.push_back(shape == BoundaryShape::kPocock ? c : c / std::sqrt(share));
    }
    return z;
  };
  double low = normal_quantile(1 - alpha);  // one look
  double high = low + 2.5;                  // beyond what ten looks need
  while (high - low > 1e-6) {
    const double middle = 0.5 * (low + high);
    (crossing_probability(information, bounds_for(middle)) > alpha ? low : high) = middle;
  }
  std::vector<double> levels;
  for (const double bound : bounds_for(high)) levels.push_back(1 - normal_cdf(bound));
  if (information.size() == 1) levels[0] = alpha;
  return levels;
}

}  // namespace spud::stats
