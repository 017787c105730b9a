// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cost_model.hpp"

#include <algorithm>
#include <cmath>

namespace spud::scheduler {
namespace {

constexpr double kForgetting = 0.99;  // half of the weight lies in the last 70 steps
// The guess may be wrong by about a factor of ten.
constexpr double kInitialVariance = 100;
// What is learnt may change: per step by this part of itself (variance), so that the filter never
// becomes deaf; and it is never less certain than its own size, or forgetting without variety in
// the steps would let the uncertainty grow for ever.
constexpr double kDrift = 1e-4;
constexpr double kMaxVariance = 1;
constexpr double kLeastFactor = 0.1;  // for both of them
constexpr double kMaxFactor = 1e4;
constexpr double kShortest = 1e-6;
// These many observations count in full; later ones no more than kOutlier times the usual error.
constexpr std::int64_t kLearning = 8;
constexpr double kOutlier = 3;
constexpr double kSpreadRate = 0.05;

}  // namespace

CostModel::CostModel(const Coefficients& guess)
    : scale_{guess.fixed, guess.decode_row, guess.prefill_row, guess.context_token} {
  for (std::size_t i = 0; i < kSize; ++i) covariance_[i][i] = kInitialVariance;
}

CostModel::Vector CostModel::features(std::int64_t decode_rows, std::int64_t prefill_rows,
                                      std::int64_t context_tokens) noexcept {
  return {1, static_cast<double>(decode_rows), static_cast<double>(prefill_rows),
          static_cast<double>(context_tokens)};
}

double CostModel::predict_s(std::int64_t decode_rows, std::int64_t prefill_rows,
                            std::int64_t context_tokens) const noexcept {
  const Vector x = features(decode_rows, prefill_rows, context_tokens);
  double seconds = 0;
  for (std::size_t i = 0; i < kSize; ++i) seconds += factor_[i] * scale_[i] * x[i];
  return std::max(seconds, kShortest);
}

void CostModel::observe(const StepCost& cost) noexcept {
  const double measured = std::max(std::chrono::duration<double>(cost.duration).count(), kShortest);
  const double predicted = predict_s(cost.decode_rows, cost.prefill_rows, cost.context_tokens);
  // Relative to the larger of both: within (-1, 1] whatever the clock says.
  const double size = std::max(measured, predicted);
  Vector x = features(cost.decode_rows, cost.prefill_rows, cost.context_tokens);
  for (std::size_t i = 0; i < kSize; ++i) x[i] *= scale_[i] / size;
  double error = (measured - predicted) / size;
  if (++num_observed_ > kLearning) {
    const double limit = kOutlier * spread_;
    error = std::clamp(error, -limit, limit);
  }
  spread_ = std::clamp(spread_ + kSpreadRate * (std::abs(error) - spread_), 0.01, 1.0);

  Vector gain{};  // P x / (lambda + x' P x)
  double denominator = kForgetting;
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) gain[i] += covariance_[i][j] * x[j];
    denominator += x[i] * gain[i];
  }
  const Vector px = gain;
  for (std::size_t i = 0; i < kSize; ++i) {
    gain[i] /= denominator;
    factor_[i] = std::clamp(factor_[i] + gain[i] * error, 0.0, kMaxFactor);
    for (std::size_t j = 0; j < kSize; ++j) {
      covariance_[i][j] = (covariance_[i][j] - px[i] * px[j] / denominator) / kForgetting;
    }
  }
  if (num_observed_ > kLearning) bound_covariance();
}

void CostModel::bound_covariance() noexcept {
  Vector shrink{};
  for (std::size_t i = 0; i < kSize; ++i) {
    const double size = std::max(factor_[i] * factor_[i], kLeastFactor * kLeastFactor);
    double& variance = covariance_[i][i];
    variance = std::max(variance, 0.0) + kDrift * size;
    shrink[i] = variance > kMaxVariance * size ? std::sqrt(kMaxVariance * size / variance) : 1;
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) covariance_[i][j] *= shrink[i] * shrink[j];
  }
}

CostModel::Coefficients CostModel::coefficients() const noexcept {
  return {.fixed = factor_[0] * scale_[0],
          .decode_row = factor_[1] * scale_[1],
          .prefill_row = factor_[2] * scale_[2],
          .context_token = factor_[3] * scale_[3]};
}

}  // namespace spud::scheduler
