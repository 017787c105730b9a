// SPDX-License-Identifier: Apache-2.0
// The highest rate that still meets something: doubling until it does not, then bisection of the
// last interval. Pure; what a trial is, the caller says.
#pragma once

#include <functional>
#include <vector>

#include "base/result.hpp"

namespace spud::loadgen {

struct FindRateOptions {
  double first = 1;         // where to begin
  double known_good = 0;    // met before: begin just above it, and do not look below; 0 = none
  double highest = 1e5;     // do not try above
  double tolerance = 0.08;  // stop when the interval is that narrow, relative
  int max_trials = 16;
};

struct RateTrial {
  double rate = 0;
  bool met = false;
};

struct FoundRate {
  double rate = 0;  // the highest that met it, known_good included; 0 = none did
  std::vector<RateTrial> trials;
};

[[nodiscard]] Result<FoundRate> find_rate(const FindRateOptions& options,
                                          const std::function<Result<bool>(double rate)>& meets);

}  // namespace spud::loadgen
