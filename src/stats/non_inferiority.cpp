// SPDX-License-Identifier: Apache-2.0
#include "stats/non_inferiority.hpp"

#include <cmath>

#include "stats/distributions.hpp"

namespace spud::stats {

Decision at_most(const Bounds& bounds, double margin) noexcept {
  if (!std::isfinite(bounds.estimate) || std::isnan(margin)) return Decision::kUndecided;
  if (bounds.upper <= margin) return Decision::kHolds;
  return bounds.lower > margin ? Decision::kRefuted : Decision::kUndecided;
}

Decision at_least(const Bounds& bounds, double margin) noexcept {
  if (!std::isfinite(bounds.estimate) || std::isnan(margin)) return Decision::kUndecided;
  if (bounds.lower >= margin) return Decision::kHolds;
  return bounds.upper < margin ? Decision::kRefuted : Decision::kUndecided;
}

double detectable_effect(double standard_error, double alpha, double power) noexcept {
  return (normal_quantile(1 - alpha) + normal_quantile(power)) * standard_error;
}

double required_units(double spread, double margin, double alpha, double power) noexcept {
  const double ratio = detectable_effect(spread, alpha, power) / margin;
  return std::ceil(ratio * ratio);
}

}  // namespace spud::stats
