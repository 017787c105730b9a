// SPDX-License-Identifier: Apache-2.0
// Many tests at once: Holm's step-down correction (1979). For "is any of these different?"; not for
// "are all of these good enough?", where every test must pass by itself and no correction is due.
#pragma once

#include <span>
#include <vector>

namespace spud::stats {

// Adjusted p-values in the order given: reject those below the family-wise level.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace spud::stats
