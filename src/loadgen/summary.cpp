// SPDX-License-Identifier: Apache-2.0
#include "loadgen/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "loadgen/runner.hpp"
#include "stats/robust.hpp"

namespace spud::loadgen {
namespace {

double seconds(Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double per_second(double amount, double time) { return time > 0 ? amount / time : 0; }

// Values of the answered requests, collected once.
struct Values {
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> e2e;
  std::vector<double> longest_gap;
  std::vector<double> lateness;

  void add(const Outcome& outcome) {
    ttft.push_back(seconds(outcome.time_to_first_token()));
    e2e.push_back(seconds(outcome.end_to_end()));
    lateness.push_back(seconds(outcome.sent - outcome.scheduled));
    if (outcome.output_tokens < 2) return;  // no gap to speak of
    tpot.push_back(seconds(outcome.time_per_output_token()));
    longest_gap.push_back(seconds(outcome.longest_gap));
  }
};

}  // namespace

Percentiles percentiles_of(std::vector<double> values) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {kNothing, kNothing, kNothing, kNothing, kNothing};
  std::ranges::sort(values);
  return {.mean = std::accumulate(values.begin(), values.end(), 0.0) /
                  static_cast<double>(values.size()),
          .p50 = stats::quantile_of_sorted(values, 0.5),
          .p90 = stats::quantile_of_sorted(values, 0.9),
          .p99 = stats::quantile_of_sorted(values, 0.99),
          .max = values.back()};
}

Summary summarize(const std::deque<Outcome>& outcomes, const Slo& slo, int tenant) {
  Summary summary;
  Values values;
  Nanoseconds first = Nanoseconds::max();
  Nanoseconds last = Nanoseconds::min();
  for (const Outcome& outcome : outcomes) {
    if (tenant >= 0 && outcome.tenant != tenant) continue;
    ++summary.requests;
    first = std::min(first, outcome.scheduled);
    last = std::max({last, outcome.ended, outcome.scheduled});
    if (!outcome.ok()) {
      ++summary.failures[failure_name(outcome)];
      continue;
    }
    ++summary.answered;
    summary.prompt_tokens += outcome.prompt_tokens;
    summary.cached_tokens += outcome.cached_tokens;
    summary.output_tokens += outcome.output_tokens;
    if (slo.met_by(outcome)) ++summary.within_slo;
    values.add(outcome);
  }
  if (summary.requests > 0) summary.seconds = seconds(last - first);
  summary.ttft = percentiles_of(std::move(values.ttft));
  summary.tpot = percentiles_of(std::move(values.tpot));
  summary.e2e = percentiles_of(std::move(values.e2e));
  summary.longest_gap = percentiles_of(std::move(values.longest_gap));
  summary.lateness = percentiles_of(std::move(values.lateness));
  return summary;
}

double Summary::output_tokens_per_s() const noexcept {
  return per_second(static_cast<double>(output_tokens), seconds);
}
double Summary::requests_per_s() const noexcept {
  return per_second(static_cast<double>(answered), seconds);
}
double Summary::goodput_per_s() const noexcept {
  return per_second(static_cast<double>(within_slo), seconds);
}

bool meets_slo(const std::deque<Outcome>& outcomes, const Slo& slo, double quantile) {
  if (outcomes.empty()) return false;
  const auto holds = [&](const Slo& one) {
    const auto met = std::ranges::count_if(
        outcomes, [&one](const Outcome& outcome) { return one.met_by(outcome); });
    return static_cast<double>(met) >= quantile * static_cast<double>(outcomes.size());
  };
  return holds({.ttft = slo.ttft}) && holds({.tpot = slo.tpot}) && holds({.e2e = slo.e2e});
}

}  // namespace spud::loadgen
