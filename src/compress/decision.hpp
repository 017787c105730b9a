// SPDX-License-Identifier: Apache-2.0
// The parts of a verdict that are not quality: is the file small enough, is it fast enough. Pure.
// Quality itself is decided by quality::decide on the raw measurement.
#pragma once

#include <cstdint>
#include <string>

#include "compress/recipe.hpp"
#include "compress/speed.hpp"

namespace spud::compress {

struct RuleOutcome {
  bool good = false;
  std::string reason;  // one sentence with the figures
};

// Bytes of the written files, not of the tensors.
RuleOutcome judge_size(const RuleOptions& rules, std::uint64_t bytes, std::uint64_t accepted_bytes);
// The lower bounds against the rules: what is not shown to be fast enough is refused.
RuleOutcome judge_speed(const RuleOptions& rules, const SpeedComparison& speed);
// Of a model against itself: both intervals must contain one, give or take `tolerance`.
RuleOutcome judge_floor(const SpeedComparison& speed, double tolerance);

}  // namespace spud::compress
