// SPDX-License-Identifier: Apache-2.0
// Figures over many outcomes. Percentiles are over answered requests; what was dropped, refused or
// cut off has no latency, so it is counted by kind and as a miss of every limit.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "loadgen/outcome.hpp"
#include "loadgen/slo.hpp"

namespace spud::loadgen {

// Seconds. NaN when there is nothing.
struct Percentiles {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};
Percentiles percentiles_of(std::vector<double> values);

struct Summary {
  std::size_t requests = 0;  // scheduled
  std::size_t answered = 0;
  std::map<std::string, std::size_t> failures;  // by kind
  double seconds = 0;                           // first scheduled to last ended
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t output_tokens = 0;
  Percentiles ttft;
  Percentiles tpot;
  Percentiles e2e;
  Percentiles longest_gap;
  Percentiles lateness;        // sent after scheduled: the generator's own fault
  std::size_t within_slo = 0;  // all limits met

  double output_tokens_per_s() const noexcept;
  double requests_per_s() const noexcept;  // answered
  double goodput_per_s() const noexcept;   // answered within the limits
};

// Of one tenant, or of all with tenant < 0.
Summary summarize(const std::deque<Outcome>& outcomes, const Slo& slo, int tenant = -1);

// Whether each limit holds at the quantile: at most (1 - quantile) of the requests miss it, and
// those without an answer miss all.
bool meets_slo(const std::deque<Outcome>& outcomes, const Slo& slo, double quantile = 0.99);

}  // namespace spud::loadgen
