// SPDX-License-Identifier: Apache-2.0
// Intervals by resampling whole clusters (texts), because tokens of one text are not independent.
// Estimators are ratios of sums, so that long texts weigh more, as in a perplexity. Bounds are
// one-sided: each is wrong with probability alpha. BCa (Efron 1987) corrects bias and skew, and the
// percentiles are widened for few clusters (Hesterberg 2015, "expanded percentiles"). The same
// input and seed give the same bounds on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace spud::stats {

struct Bounds {
  double estimate = 0;
  double lower = 0;  // -inf when there are fewer than two clusters
  double upper = 0;  // +inf then
  double standard_error = 0;
  double alpha = 0;  // of each bound
};

enum class BootstrapMethod {
  kBca,         // for smooth statistics: means, ratios
  kPercentile,  // for quantiles and medians, where the jackknife of BCa fails
};

struct BootstrapOptions {
  int resamples = 2000;
  std::uint64_t seed = 20261130;
  BootstrapMethod method = BootstrapMethod::kBca;
};

struct ClusterSum {
  double numerator = 0;
  double denominator = 0;
};

// sum(numerator) / sum(denominator). 0 < alpha < 0.5.
Bounds bootstrap_ratio(std::span<const ClusterSum> clusters, double alpha,
                       const BootstrapOptions& options = {});

// Any statistic of a sample of clusters, given by their indices (with repeats).
using Statistic = std::function<double(std::span<const std::size_t> clusters)>;
Bounds bootstrap(std::size_t num_clusters, const Statistic& statistic, double alpha,
                 const BootstrapOptions& options = {});

// Speed: median of the candidate's times over median of the baseline's, measured in pairs.
struct TimePair {
  double baseline = 0;
  double candidate = 0;
};
Bounds bootstrap_median_ratio(std::span<const TimePair> pairs, double alpha,
                              BootstrapOptions options = {});

}  // namespace spud::stats
