// SPDX-License-Identifier: Apache-2.0
#include "stats/proportions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stats/distributions.hpp"

namespace spud::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Correlation of the two answers, with Newcombe's continuity correction.
double correlation(const PairedCounts& c) noexcept {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double margins = real(c.both + c.only_first) * real(c.only_second + c.neither) *
                         real(c.both + c.only_second) * real(c.only_first + c.neither);
  if (margins <= 0) return 0;
  double cross = real(c.both) * real(c.neither) - real(c.only_first) * real(c.only_second);
  if (cross > 0) cross = std::max(cross - real(c.total()) / 2, 0.0);
  return cross / std::sqrt(margins);
}

double hypotenuse(double a, double b, double correlation_value) noexcept {
  return std::sqrt(std::max(a * a - 2 * correlation_value * a * b + b * b, 0.0));
}

}  // namespace

Bounds wilson(std::int64_t successes, std::int64_t trials, double alpha) noexcept {
  if (trials <= 0) {
    return {.estimate = std::numeric_limits<double>::quiet_NaN(),
            .lower = -kInfinity,
            .upper = kInfinity,
            .standard_error = kInfinity,
            .alpha = alpha};
  }
  const double n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n;
  const double z = normal_quantile(1 - alpha);
  const double shrink = 1 + z * z / n;
  const double centre = (p + z * z / (2 * n)) / shrink;
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrink;
  return {.estimate = p,
          .lower = successes == 0 ? 0 : std::max(centre - half, 0.0),
          .upper = successes == trials ? 1 : std::min(centre + half, 1.0),
          .standard_error = std::sqrt(p * (1 - p) / n),
          .alpha = alpha};
}

double mcnemar_exact(const PairedCounts& counts) noexcept {
  const std::int64_t switched = counts.only_first + counts.only_second;
  const std::int64_t fewer = std::min(counts.only_first, counts.only_second);
  double tail = 0;
  for (std::int64_t k = 0; k <= fewer; ++k) {
    const auto n = static_cast<double>(switched);
    const auto m = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(m + 1) - std::lgamma(n - m + 1) -
                     n * std::log(2.0));
  }
  return std::min(2 * tail, 1.0);
}

Bounds newcombe_paired(const PairedCounts& counts, double alpha) noexcept {
  const std::int64_t n = counts.total();
  const Bounds first = wilson(counts.both + counts.only_first, n, alpha);
  const Bounds second = wilson(counts.both + counts.only_second, n, alpha);
  if (n <= 0) return first;
  const double phi = correlation(counts);
  const double difference = first.estimate - second.estimate;
  const double down = hypotenuse(first.estimate - first.lower, second.upper - second.estimate, phi);
  const double up = hypotenuse(first.upper - first.estimate, second.estimate - second.lower, phi);
  const double share_switched =
      static_cast<double>(counts.only_first + counts.only_second) / static_cast<double>(n);
  return {.estimate = difference,
          .lower = difference - down,
          .upper = difference + up,
          .standard_error = std::sqrt(std::max(share_switched - difference * difference, 0.0) /
                                      static_cast<double>(n)),
          .alpha = alpha};
}

}  // namespace spud::stats
