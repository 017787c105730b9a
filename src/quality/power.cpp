// SPDX-License-Identifier: Apache-2.0
// Before a chain starts: is there enough validation text for the margins asked for?
#include <cmath>

#include "quality/gate_metrics.hpp"
#include "stats/non_inferiority.hpp"
#include "stats/sequential.hpp"

namespace spud::quality {
namespace {

// Spread between texts of about 240 scored tokens (standard deviation of a text's mean), measured
// on SmolLM2-135M with the built-in set: Q8_0 for tight budgets, between Q5_0 and IQ4_NL for loose
// ones. Shorter texts spread more, by the root of the length.
struct Spread {
  double log_ppl;
  double kld;
  double top1;
};
constexpr Spread kEightBit{0.010, 0.002, 0.020};
constexpr Spread kFourBit{0.045, 0.040, 0.055};
constexpr double kTokensOfSpread = 240;

PowerFinding make_finding(std::string metric, double standard_error, double margin, double alpha,
                          const SequenceSet& set) {
  PowerFinding f{.metric = std::move(metric), .margin = margin};
  f.detectable = stats::detectable_effect(standard_error, alpha);
  f.sufficient = f.detectable <= margin;
  if (f.sufficient) {
    f.sentence = fmt::format("{}: {} texts tell differences of {:.4f}; the margin is {:.4f}",
                             f.metric, set.sequences.size(), f.detectable, margin);
  } else {
    const double factor = (f.detectable / margin) * (f.detectable / margin);
    f.sentence = fmt::format(
        "{}: cannot decide: {} texts tell differences of {:.4f}, but the margin is {:.4f}; give "
        "about {:.0f} texts or a wider margin",
        f.metric, set.sequences.size(), f.detectable, margin,
        std::ceil(factor * static_cast<double>(set.sequences.size())));
  }
  return f;
}

}  // namespace

std::vector<PowerFinding> check_power(const Budget& budget, const SequenceSet& set,
                                      const Measurement* pilot) {
  const double alpha =
      stats::look_levels(budget.looks, budget.alpha, stats::BoundaryShape::kPocock).back();
  const double n = static_cast<double>(set.sequences.size());
  const double mean_tokens = static_cast<double>(set.num_scored()) / n;
  const bool tight = budget.ppl_ratio_max.value_or(1) < 1.02;
  const Spread spread = tight ? kEightBit : kFourBit;
  const double shrink = std::sqrt(kTokensOfSpread / mean_tokens) / std::sqrt(n);
  double log_ppl = spread.log_ppl * shrink;
  double kld = spread.kld * shrink;
  double top1 = spread.top1 * shrink;
  if (pilot != nullptr && pilot->sequences.size() >= 4) {
    const double scale = std::sqrt(static_cast<double>(pilot->sequences.size()) / n);
    log_ppl = internal::log_ppl_ratio_bounds(*pilot, alpha).standard_error * scale;
    kld = internal::kld_bounds(*pilot, alpha).standard_error * scale;
    top1 = internal::top1_bounds(*pilot, alpha).standard_error * scale;
  }
  std::vector<PowerFinding> findings;
  if (budget.ppl_ratio_max) {
    findings.push_back(
        make_finding("ppl_ratio", log_ppl, std::log(*budget.ppl_ratio_max), alpha, set));
  }
  if (budget.kld_mean_max) {
    findings.push_back(make_finding("kld_mean", kld, *budget.kld_mean_max, alpha, set));
  }
  if (budget.top1_min) {
    findings.push_back(make_finding("top1_agreement", top1, 1 - *budget.top1_min, alpha, set));
  }
  return findings;
}

}  // namespace spud::quality
