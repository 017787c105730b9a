// SPDX-License-Identifier: Apache-2.0
// Shares of yes and no: how sure is "71 of 120 right", and do two models that answered the same
// questions differ? Exact or score methods, which hold near 0 and 1 and for few questions.
#pragma once

#include <cstdint>

#include "stats/bootstrap.hpp"

namespace spud::stats {

// Wilson's score interval (1927); alpha is the error of each bound.
Bounds wilson(std::int64_t successes, std::int64_t trials, double alpha) noexcept;

// Both answered the same questions.
struct PairedCounts {
  std::int64_t both = 0;
  std::int64_t only_first = 0;
  std::int64_t only_second = 0;
  std::int64_t neither = 0;
  std::int64_t total() const noexcept { return both + only_first + only_second + neither; }
};

// Two-sided p-value of "as many switched one way as the other" (McNemar 1947, exact binomial).
double mcnemar_exact(const PairedCounts& counts) noexcept;

// first's share - second's share with Newcombe's (1998) interval, method 10.
Bounds newcombe_paired(const PairedCounts& counts, double alpha) noexcept;

}  // namespace spud::stats
