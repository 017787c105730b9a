// SPDX-License-Identifier: Apache-2.0
#include "quality/row_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace spud::quality::internal {
namespace {

constexpr std::size_t kLanes = 16;

// exp(x) for x <= 0: 2^n * exp(r) with |r| <= ln(2)/2 and a polynomial for exp(r). Below -87 the
// result is about 1e-38 instead of less, which no sum in double can see beside exp(0) = 1.
inline float exp_nonpositive(float x) noexcept {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float bounded = x > -87.0F ? x : -87.0F;
  const float shifted = bounded * 1.44269504F + kMagic;
  const auto n = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                           std::bit_cast<std::uint32_t>(kMagic));
  const float whole = shifted - kMagic;
  const float r = (bounded - whole * 0.693359375F) + whole * 2.12194440e-4F;
  float p = 1.0F / 5040;  // Taylor to r^7: error below 4e-9 for |r| <= 0.347
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}

struct Lanes {
  double sum[kLanes] = {};
  double total() const noexcept {
    double all = 0;
    for (const double lane : sum) all += lane;
    return all;
  }
};

float largest(std::span<const float> x) noexcept {
  float lane[kLanes];
  std::fill(std::begin(lane), std::end(lane), -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
  }
  float max = *std::max_element(std::begin(lane), std::end(lane));
  for (; i < x.size(); ++i) max = std::max(max, x[i]);
  return max;
}

// x * 0 is 0 for finite x and NaN otherwise.
bool all_finite(std::span<const float> x) noexcept {
  float lane[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lane[l] += x[i + l] * 0.0F;
  }
  float sum = 0;
  for (const float value : lane) sum += value;
  for (; i < x.size(); ++i) sum += x[i] * 0.0F;
  return sum == 0;
}

}  // namespace

RowSums sum_row(std::span<const float> logits) noexcept {
  RowSums sums;
  sums.finite = !logits.empty() && all_finite(logits);
  if (!sums.finite) return sums;
  sums.max = largest(logits);
  sums.argmax = static_cast<std::size_t>(std::ranges::find(logits, sums.max) - logits.begin());
  Lanes lanes;
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    float e[kLanes];
    for (std::size_t l = 0; l < kLanes; ++l) e[l] = exp_nonpositive(logits[i + l] - sums.max);
    for (std::size_t l = 0; l < kLanes; ++l) lanes.sum[l] += static_cast<double>(e[l]);
  }
  for (; i < logits.size(); ++i) {
    lanes.sum[0] += static_cast<double>(exp_nonpositive(logits[i] - sums.max));
  }
  sums.log_sum_exp = static_cast<double>(sums.max) + std::log(lanes.total());
  return sums;
}

double expected_difference(std::span<const float> a, float a_max,
                           std::span<const float> b) noexcept {
  Lanes weighted;
  Lanes weights;
  std::size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    float e[kLanes];
    for (std::size_t l = 0; l < kLanes; ++l) e[l] = exp_nonpositive(a[i + l] - a_max);
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double weight = static_cast<double>(e[l]);
      weights.sum[l] += weight;
      weighted.sum[l] += weight * (static_cast<double>(a[i + l]) - static_cast<double>(b[i + l]));
    }
  }
  for (; i < a.size(); ++i) {
    const double weight = static_cast<double>(exp_nonpositive(a[i] - a_max));
    weights.sum[0] += weight;
    weighted.sum[0] += weight * (static_cast<double>(a[i]) - static_cast<double>(b[i]));
  }
  return weighted.total() / weights.total();
}

}  // namespace spud::quality::internal
