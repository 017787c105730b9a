// SPDX-License-Identifier: Apache-2.0
#include "stats/bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/check.hpp"
#include "stats/distributions.hpp"
#include "stats/robust.hpp"

namespace spud::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// std::uniform_int_distribution differs between standard libraries; this does not. The bias of
// 2^-64 * count is far below what 2,000 resamples can show.
std::size_t draw_index(std::mt19937_64& random, std::size_t count) {
  return static_cast<std::size_t>((static_cast<unsigned __int128>(random()) * count) >> 64);
}

std::vector<double> resample(std::size_t count, const Statistic& statistic,
                             const BootstrapOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<std::size_t> indices(count);
  std::vector<double> values(static_cast<std::size_t>(options.resamples));
  for (double& value : values) {
    for (std::size_t& index : indices) index = draw_index(random, count);
    value = statistic(indices);
  }
  return values;
}

double standard_deviation(std::span<const double> values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// Skewness of the leave-one-out values over six: how fast the standard error changes.
double acceleration(std::size_t count, const Statistic& statistic) {
  std::vector<double> left_out(count);
  std::vector<std::size_t> indices(count - 1);
  for (std::size_t out = 0; out < count; ++out) {
    for (std::size_t i = 0; i + 1 < count; ++i) indices[i] = i < out ? i : i + 1;
    left_out[out] = statistic(indices);
  }
  const double mean =
      std::accumulate(left_out.begin(), left_out.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  double cubes = 0;
  for (const double value : left_out) {
    const double d = mean - value;
    squares += d * d;
    cubes += d * d * d;
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

// The normal score of the share of resamples below the estimate: median bias.
double bias_score(std::span<const double> sorted, double estimate) {
  const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), estimate);
  const double below = static_cast<double>(first - sorted.begin());
  const double equal = static_cast<double>(last - first);
  const double count = static_cast<double>(sorted.size());
  const double share =
      std::clamp((below + 0.5 * equal) / count, 1 / (count + 1), count / (count + 1));
  return normal_quantile(share);
}

}  // namespace

Bounds bootstrap(std::size_t num_clusters, const Statistic& statistic, double alpha,
                 const BootstrapOptions& options) {
  SPUD_CHECK(alpha > 0 && alpha < 0.5 && options.resamples >= 100);
  Bounds bounds{.lower = -kInfinity, .upper = kInfinity, .alpha = alpha};
  std::vector<std::size_t> all(num_clusters);
  std::iota(all.begin(), all.end(), std::size_t{0});
  bounds.estimate = num_clusters == 0 ? std::numeric_limits<double>::quiet_NaN() : statistic(all);
  bounds.standard_error = kInfinity;
  if (num_clusters < 2 || !std::isfinite(bounds.estimate)) return bounds;

  std::vector<double> values = resample(num_clusters, statistic, options);
  if (std::ranges::any_of(values, [](double v) { return !std::isfinite(v); })) return bounds;
  std::ranges::sort(values);
  bounds.standard_error = standard_deviation(values);

  const double n = static_cast<double>(num_clusters);
  const double z = std::sqrt(n / (n - 1)) * student_quantile(1 - alpha, n - 1);
  const bool bca = options.method == BootstrapMethod::kBca;
  const double z0 = bca ? bias_score(values, bounds.estimate) : 0;
  const double a = bca && num_clusters > 2 ? acceleration(num_clusters, statistic) : 0;
  const auto bound_at = [&](double score) {
    const double shifted = z0 + score;
    const double adjusted = z0 + shifted / std::max(1 - a * shifted, 0.1);
    return quantile_of_sorted(values, normal_cdf(adjusted));
  };
  bounds.lower = bound_at(-z);
  bounds.upper = bound_at(z);
  return bounds;
}

Bounds bootstrap_ratio(std::span<const ClusterSum> clusters, double alpha,
                       const BootstrapOptions& options) {
  const auto ratio = [clusters](std::span<const std::size_t> indices) {
    ClusterSum sum;
    for (const std::size_t index : indices) {
      sum.numerator += clusters[index].numerator;
      sum.denominator += clusters[index].denominator;
    }
    return sum.numerator / sum.denominator;
  };
  return bootstrap(clusters.size(), ratio, alpha, options);
}

Bounds bootstrap_median_ratio(std::span<const TimePair> pairs, double alpha,
                              BootstrapOptions options) {
  options.method = BootstrapMethod::kPercentile;
  const auto ratio = [pairs](std::span<const std::size_t> indices) {
    std::vector<double> baseline;
    std::vector<double> candidate;
    for (const std::size_t index : indices) {
      baseline.push_back(pairs[index].baseline);
      candidate.push_back(pairs[index].candidate);
    }
    return median(std::move(candidate)) / median(std::move(baseline));
  };
  return bootstrap(pairs.size(), ratio, alpha, options);
}

}  // namespace spud::stats
