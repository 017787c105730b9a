// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "stats/bootstrap.hpp"
#include "stats/distributions.hpp"
#include "stats/multiple_tests.hpp"
#include "stats/non_inferiority.hpp"
#include "stats/proportions.hpp"
#include "stats/robust.hpp"
#include "stats/sequential.hpp"

namespace spud::stats {
namespace {

TEST(Distributions, NormalMatchesTables) {
  EXPECT_NEAR(normal_cdf(1.96), 0.9750021048517795, 1e-14);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.95), 1.644853626951473, 1e-12);
  EXPECT_NEAR(normal_quantile(1e-6), -4.753424308822899, 1e-10);
  EXPECT_EQ(normal_quantile(0.0), -std::numeric_limits<double>::infinity());
}

TEST(Distributions, StudentMatchesTables) {
  EXPECT_NEAR(student_quantile(0.95, 10), 1.812461, 1e-6);
  EXPECT_NEAR(student_quantile(0.975, 2), 4.302653, 1e-6);
  EXPECT_NEAR(student_quantile(0.05, 30), -1.697261, 1e-6);
  EXPECT_NEAR(student_cdf(0, 5), 0.5, 1e-12);
}

TEST(Robust, QuantilesAreLinearBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  const std::vector<double> sorted{0, 10, 20, 30, 40};
  EXPECT_DOUBLE_EQ(quantile_of_sorted(sorted, 0.9), 36);
  EXPECT_TRUE(std::isnan(median({})));
  const std::vector<double> with_outlier{1, 1, 2, 2, 4, 6, 900};
  EXPECT_NEAR(scaled_mad(with_outlier), 1.4826, 1e-12);
}

// Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3.
TEST(Wilson, MatchesPublishedIntervals) {
  const Bounds common = wilson(81, 263, 0.025);
  EXPECT_NEAR(common.lower, 0.2553, 5e-5);
  EXPECT_NEAR(common.upper, 0.3662, 5e-5);
  const Bounds rare = wilson(1, 29, 0.025);
  EXPECT_NEAR(rare.lower, 0.0061, 5e-5);
  EXPECT_NEAR(rare.upper, 0.1718, 5e-5);
  const Bounds never = wilson(0, 20, 0.025);
  EXPECT_EQ(never.lower, 0);
  EXPECT_NEAR(never.upper, 0.1611, 5e-5);
}

TEST(Mcnemar, IsTheExactBinomialTail) {
  // 9 switched, 1 one way: 2 * (1 + 9) / 2^9.
  EXPECT_NEAR(mcnemar_exact({.only_first = 1, .only_second = 8}), 20.0 / 512, 1e-12);
  EXPECT_NEAR(mcnemar_exact({.both = 5, .only_first = 3, .only_second = 3, .neither = 5}), 1,
              1e-12);
  EXPECT_DOUBLE_EQ(mcnemar_exact({.both = 7}), 1);
}

TEST(Newcombe, AgreesWithHandComputation) {
  // 36 both, 12 only first, 2 only second, 0 neither. Wilson of 48/50: 0.8654 to 0.9890; of 38/50:
  // 0.6259 to 0.8570; phi = -24 / sqrt(48 * 2 * 38 * 12) = -0.11471.
  const Bounds b = newcombe_paired({.both = 36, .only_first = 12, .only_second = 2}, 0.025);
  EXPECT_NEAR(b.estimate, 0.2, 1e-12);
  EXPECT_NEAR(b.lower, 0.05693, 1e-5);
  EXPECT_NEAR(b.upper, 0.34043, 1e-5);
  const Bounds same = newcombe_paired({.both = 60, .neither = 40}, 0.025);
  EXPECT_EQ(same.estimate, 0);
  EXPECT_LT(same.lower, 0);
  EXPECT_NEAR(same.lower, -same.upper, 1e-12);
}

TEST(Holm, StepsDownAndStaysMonotone) {
  // By hand: 0.01*4, max(0.04, 0.013*3), max(., 0.03*2), max(., 0.04*1).
  const std::vector<double> p{0.01, 0.04, 0.03, 0.013};
  const std::vector<double> adjusted = holm(p);
  EXPECT_NEAR(adjusted[0], 0.04, 1e-12);
  EXPECT_NEAR(adjusted[3], 0.04, 1e-12);
  EXPECT_NEAR(adjusted[2], 0.06, 1e-12);
  EXPECT_NEAR(adjusted[1], 0.06, 1e-12);
}

// Jennison & Turnbull, Group Sequential Methods (2000), tables 2.1 and 2.3: two-sided 5 %.
TEST(Sequential, BoundariesMatchPublishedConstants) {
  const std::vector<double> thirds{1.0 / 3, 2.0 / 3, 1.0};
  const auto pocock = look_levels(thirds, 0.025, BoundaryShape::kPocock);
  for (const double level : pocock) EXPECT_NEAR(normal_quantile(1 - level), 2.289, 2e-3);
  const auto strict = look_levels(thirds, 0.025, BoundaryShape::kObrienFleming);
  EXPECT_NEAR(normal_quantile(1 - strict[2]), 2.004, 2e-3);
  EXPECT_NEAR(normal_quantile(1 - strict[0]), 2.004 * std::sqrt(3.0), 5e-3);
  EXPECT_DOUBLE_EQ(look_levels(std::vector{1.0}, 0.05, BoundaryShape::kPocock)[0], 0.05);
}

TEST(Sequential, KeepsTheTotalErrorInSimulation) {
  const std::vector<double> information{0.25, 0.5, 1.0};
  const auto levels = look_levels(information, 0.05, BoundaryShape::kPocock);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  int crossed = 0;
  constexpr int kRuns = 40000;
  for (int run = 0; run < kRuns; ++run) {
    double walk = 0;
    double before = 0;
    for (std::size_t k = 0; k < information.size(); ++k) {
      walk += std::sqrt(information[k] - before) * normal(random);
      before = information[k];
      if (walk / std::sqrt(before) > normal_quantile(1 - levels[k])) {
        ++crossed;
        break;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(crossed) / kRuns, 0.05, 0.004);
}

TEST(Bootstrap, OfEqualClustersHasNoWidth) {
  const std::vector<ClusterSum> clusters(12, ClusterSum{3, 4});
  const Bounds b = bootstrap_ratio(clusters, 0.05);
  EXPECT_DOUBLE_EQ(b.estimate, 0.75);
  EXPECT_DOUBLE_EQ(b.lower, 0.75);
  EXPECT_DOUBLE_EQ(b.upper, 0.75);
}

TEST(Bootstrap, WeighsLongClustersMore) {
  const std::vector<ClusterSum> clusters{{10, 100}, {1, 1}};
  EXPECT_NEAR(bootstrap_ratio(clusters, 0.05).estimate, 11.0 / 101, 1e-12);
}

TEST(Bootstrap, DecidesNothingWithoutTwoClusters) {
  const std::vector<ClusterSum> one{{1, 2}};
  const Bounds b = bootstrap_ratio(one, 0.05);
  EXPECT_EQ(b.upper, std::numeric_limits<double>::infinity());
  EXPECT_EQ(at_most(b, 1.0), Decision::kUndecided);
  EXPECT_EQ(at_most(bootstrap_ratio({}, 0.05), 1.0), Decision::kUndecided);
}

TEST(Bootstrap, GivesTheSameBoundsForTheSameSeed) {
  std::vector<ClusterSum> clusters;
  for (int i = 0; i < 30; ++i) clusters.push_back({std::sin(i) + 2, 1.0 + i % 3});
  const Bounds a = bootstrap_ratio(clusters, 0.05);
  const Bounds b = bootstrap_ratio(clusters, 0.05);
  EXPECT_EQ(a.lower, b.lower);
  EXPECT_EQ(a.upper, b.upper);
}

// Skewed values in clusters of unequal size: each bound must miss in about 5 % of the runs.
TEST(Bootstrap, CoversTheTruthAsOftenAsItSays) {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> value(1.0);
  std::uniform_int_distribution<int> size(5, 30);
  constexpr int kRuns = 1000;
  int above = 0;
  int below = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<ClusterSum> clusters(20);
    for (ClusterSum& cluster : clusters) {
      cluster.denominator = size(random);
      const double shift = value(random);  // what the tokens of a text have in common
      cluster.numerator = cluster.denominator * (0.5 * shift + 0.5 * value(random));
    }
    const Bounds b = bootstrap_ratio(clusters, 0.05, {.resamples = 400});
    above += b.upper < 1.0;
    below += b.lower > 1.0;
  }
  EXPECT_LT(above, 0.085 * kRuns);
  EXPECT_LT(below, 0.085 * kRuns);
  EXPECT_GT(above + below, 0.04 * kRuns);
}

TEST(Bootstrap, MedianRatioOfEqualSpeedsContainsOne) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<TimePair> pairs;
  for (int i = 0; i < 15; ++i) pairs.push_back({1 + noise(random), 1 + noise(random)});
  pairs[3].candidate = 50;  // one hiccup
  const Bounds b = bootstrap_median_ratio(pairs, 0.025);
  EXPECT_LT(b.lower, 1);
  EXPECT_GT(b.upper, 1);
  EXPECT_LT(b.upper, 1.2);
}

TEST(NonInferiority, HoldsOnlyWhenTheBadSideIsWithinTheMargin) {
  EXPECT_EQ(at_most({.estimate = 1.005, .lower = 1.002, .upper = 1.008}, 1.01), Decision::kHolds);
  EXPECT_EQ(at_most({.estimate = 1.005, .lower = 1.002, .upper = 1.02}, 1.01),
            Decision::kUndecided);
  EXPECT_EQ(at_most({.estimate = 1.1, .lower = 1.02, .upper = 1.2}, 1.01), Decision::kRefuted);
  EXPECT_EQ(at_least({.estimate = 0.96, .lower = 0.95, .upper = 0.97}, 0.94), Decision::kHolds);
  EXPECT_EQ(at_least({.estimate = 0.7, .lower = 0.6, .upper = 0.8}, 0.94), Decision::kRefuted);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(at_most({.estimate = nan, .lower = nan, .upper = nan}, 1.01), Decision::kUndecided);
}

TEST(NonInferiority, PowerMatchesTheTextbook) {
  // (1.6449 + 0.8416) * 0.004 = 0.009946; for a spread of 1 and a margin of 0.1: 618.3 -> 619
  // units.
  EXPECT_NEAR(detectable_effect(0.004, 0.05), 0.0099459, 1e-6);
  EXPECT_DOUBLE_EQ(required_units(1, 0.1, 0.05), 619);
}

}  // namespace
}  // namespace spud::stats
