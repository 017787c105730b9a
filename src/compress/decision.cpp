// SPDX-License-Identifier: Apache-2.0
#include "compress/decision.hpp"

namespace spud::compress {
namespace {

std::string interval_text(const RatioInterval& r) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", r.estimate, r.lower, r.upper);
}

}  // namespace

RuleOutcome judge_size(const RuleOptions& rules, std::uint64_t bytes,
                       std::uint64_t accepted_bytes) {
  const double ratio = static_cast<double>(bytes) / static_cast<double>(accepted_bytes);
  const bool good = ratio <= rules.max_size_ratio;
  return {.good = good,
          .reason = fmt::format(
              "the file has {} bytes, {:.3f} of the last accepted ({}); {} {:.3f}", bytes, ratio,
              accepted_bytes, good ? "within" : "the rule allows at most", rules.max_size_ratio)};
}

RuleOutcome judge_speed(const RuleOptions& rules, const SpeedComparison& speed) {
  const bool prefill = speed.prefill.lower >= rules.min_prefill_ratio;
  const bool decode = speed.decode.lower >= rules.min_decode_ratio;
  if (prefill && decode) {
    return {.good = true,
            .reason = fmt::format("prefill {} and decode {} of the last accepted's speed",
                                  interval_text(speed.prefill), interval_text(speed.decode))};
  }
  const RatioInterval& bad = prefill ? speed.decode : speed.prefill;
  return {.good = false,
          .reason = fmt::format("{} runs at {} of the last accepted's speed; the rule asks for a "
                                "lower bound of {:.2f}",
                                prefill ? "decode" : "prefill", interval_text(bad),
                                prefill ? rules.min_decode_ratio : rules.min_prefill_ratio)};
}

RuleOutcome judge_floor(const SpeedComparison& speed, double tolerance) {
  const auto contains_one = [tolerance](const RatioInterval& r) {
    return r.lower <= 1 + tolerance && r.upper >= 1 - tolerance;
  };
  if (contains_one(speed.prefill) && contains_one(speed.decode))
    return {.good = true, .reason = {}};
  return {.good = false,
          .reason = fmt::format("the original timed against itself gives prefill {} and decode {} "
                                "instead of 1: this machine is too busy to measure speed",
                                interval_text(speed.prefill), interval_text(speed.decode))};
}

}  // namespace spud::compress
