// SPDX-License-Identifier: Apache-2.0
// Figures that a few outliers do not move: medians for timings, quantiles for tails.
#pragma once

#include <span>
#include <vector>

namespace spud::stats {

// Of sorted values, linear between neighbours (the usual "type 7"); q is clamped to [0, 1]. NaN
// when empty.
double quantile_of_sorted(std::span<const double> sorted, double q) noexcept;
double median(std::vector<double> values) noexcept;
// Median absolute deviation from the median, times 1.4826: a standard deviation for normal data.
double scaled_mad(std::span<const double> values);

}  // namespace spud::stats
