// SPDX-License-Identifier: Apache-2.0
// "Not worse than the margin": the question a gate asks. One-sided: it holds when the bound on the
// bad side is within the margin, it is refuted when the bound on the good side is beyond it, and
// otherwise the data do not decide.
#pragma once

#include "stats/bootstrap.hpp"

namespace spud::stats {

enum class Decision { kHolds, kRefuted, kUndecided };

// For a figure where less is better (ratio, divergence): holds when upper <= margin. NaN never
// holds.
Decision at_most(const Bounds& bounds, double margin) noexcept;
// For a figure where more is better (agreement): holds when lower >= margin.
Decision at_least(const Bounds& bounds, double margin) noexcept;

// The distance from the margin at which the true value still passes with probability `power`:
// (z(1 - alpha) + z(power)) * standard error. A margin below this can not be decided reliably.
double detectable_effect(double standard_error, double alpha, double power = 0.8) noexcept;
// How many independent units (with this spread each) make `margin` decidable.
double required_units(double spread, double margin, double alpha, double power = 0.8) noexcept;

}  // namespace spud::stats
