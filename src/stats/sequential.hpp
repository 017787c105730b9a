// SPDX-License-Identifier: Apache-2.0
// Looking more than once at growing data without fooling oneself: with three looks at 5 % each, a
// bad candidate would pass in about 11 % of cases. These boundaries share alpha over the looks so
// that the total stays alpha (Pocock 1977, O'Brien & Fleming 1979; computed by integrating the
// joint density of the looks, Armitage, McPherson & Rowe 1969).
#pragma once

#include <span>
#include <vector>

namespace spud::stats {

enum class BoundaryShape {
  kPocock,         // the same level at every look: stops early more often
  kObrienFleming,  // strict at first, nearly alpha at the last look
};

// `information`: share of all data at each look, increasing, the last 1. Result: the one-sided
// level of each look. At most 10 looks.
std::vector<double> look_levels(std::span<const double> information, double alpha,
                                BoundaryShape shape);

// The probability that a standard Brownian motion exceeds z[k] * sqrt(information[k]) at any look.
double crossing_probability(std::span<const double> information, std::span<const double> z);

}  // namespace spud::stats
