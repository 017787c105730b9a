// SPDX-License-Identifier: Apache-2.0
#include "stats/distributions.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

namespace spud::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) noexcept {
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double value = d;
  for (int m = 1; m <= 500; ++m) {
    for (const bool even : {true, false}) {
      const double numerator = even ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                    : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 + numerator * d;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = 1 + numerator / c;
      if (std::abs(c) < kTiny) c = kTiny;
      value *= d * c;
    }
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return value;
}

double incomplete_beta(double a, double b, double x) noexcept {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double normal_cdf(double z) noexcept { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double normal_quantile(double p) noexcept {
  if (p <= 0) return -kInfinity;
  if (p >= 1) return kInfinity;
  if (p > 0.5) return -normal_quantile(1 - p);
  // A rough start (Abramowitz & Stegun 26.2.23), then Newton steps on the exact distribution.
  const double t = std::sqrt(-2 * std::log(p));
  double z = -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  for (int step = 0; step < 6; ++step) {
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
    if (density == 0) break;
    const double newton = (normal_cdf(z) - p) / density;
    z -= newton / (1 + 0.5 * newton * z);  // Halley's correction: cubic convergence
  }
  return z;
}

double student_cdf(double t, double degrees_of_freedom) noexcept {
  const double x = degrees_of_freedom / (degrees_of_freedom + t * t);
  const double tail = 0.5 * incomplete_beta(degrees_of_freedom / 2, 0.5, x);
  return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double degrees_of_freedom) noexcept {
  if (p <= 0) return -kInfinity;
  if (p >= 1) return kInfinity;
  double low = -1;
  double high = 1;
  while (student_cdf(low, degrees_of_freedom) > p) low *= 2;
  while (student_cdf(high, degrees_of_freedom) < p) high *= 2;
  for (int step = 0; step < 200 && high - low > 1e-13 * std::abs(high); ++step) {
    const double middle = 0.5 * (low + high);
    (student_cdf(middle, degrees_of_freedom) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace spud::stats
