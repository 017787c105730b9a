// SPDX-License-Identifier: Apache-2.0
// Is the candidate at least nearly as fast? Both models run in turn (A B, B A, ...), so that what
// else the machine does hits both; after a warm-up each pair gives one ratio, and the median of the
// ratios is reported with a bootstrap interval. Times are taken from an injected run function: this
// file knows no model.
// Not for absolute figures: those are `spud bench`.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.hpp"

namespace spud::compress {

struct SpeedSample {
  double prefill_seconds = 0;
  double decode_seconds = 0;
};
using SpeedRun = std::function<Result<SpeedSample>()>;

struct RatioInterval {
  double estimate = 1;
  double lower = 1;
  double upper = 1;
};

struct SpeedComparison {
  std::int64_t pairs = 0;
  RatioInterval prefill;  // candidate's speed over the baseline's: above 1 is faster
  RatioInterval decode;
  double prefill_tokens_per_s = 0;  // candidate, median
  double decode_tokens_per_s = 0;
  double baseline_prefill_tokens_per_s = 0;
  double baseline_decode_tokens_per_s = 0;
};

struct SpeedPlan {
  std::int64_t pairs = 5;
  std::int64_t max_pairs = 15;
  std::int64_t prefill_tokens = 256;
  std::int64_t decode_tokens = 12;
  // More pairs are run, up to max_pairs, while an interval contains its limit.
  double prefill_limit = 0;
  double decode_limit = 0;
};

// Median of the ratios and a 95 % bootstrap interval (2000 resamples, fixed seed).
RatioInterval median_ratio(std::vector<double> ratios);

[[nodiscard]] Result<SpeedComparison> compare_speed(const SpeedPlan& plan, const SpeedRun& baseline,
                                                    const SpeedRun& candidate);

}  // namespace spud::compress
