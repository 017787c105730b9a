// SPDX-License-Identifier: Apache-2.0
#include "loadgen/find_rate.hpp"

#include <algorithm>
#include <cmath>

namespace spud::loadgen {

Result<FoundRate> find_rate(const FindRateOptions& options,
                            const std::function<Result<bool>(double rate)>& meets) {
  FoundRate found;
  double good = options.known_good;  // the highest known to meet it
  double bad = 0;                    // the lowest known not to; 0 = none yet
  const double first = good > 0 ? good * (1 + options.tolerance) : options.first;
  // A hair more than the tolerance, so that a step of just that counts as narrow enough.
  const double narrow = (1 + options.tolerance) * 1.0001;
  double rate = std::min(first, options.highest);
  while (static_cast<int>(found.trials.size()) < options.max_trials) {
    SPUD_TRY(const bool met, meets(rate));
    found.trials.push_back({.rate = rate, .met = met});
    (met ? good : bad) = rate;
    if (bad == 0) {
      if (rate >= options.highest) break;
      rate = std::min(rate * 2, options.highest);
    } else if (good == 0) {
      rate = bad / 2;
      // A thousandth of where we began: it is not met at any rate.
      if (rate < options.first / 1000) break;
    } else {
      if (bad / good <= narrow) break;
      rate = std::sqrt(good * bad);
    }
  }
  found.rate = good;
  return found;
}

}  // namespace spud::loadgen
