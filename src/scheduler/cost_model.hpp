// SPDX-License-Identifier: Apache-2.0
// How long a step takes, from what it computes: t = fixed + a * decode rows + b * prefill rows
// + c * positions read by attention. The coefficients are learnt while running by recursive least
// squares on relative errors, so that short and long steps count alike, with forgetting, so that
// another load on the machine is noticed within some hundred steps. They stay non-negative and
// bounded, and a step that was disturbed (a page fault, another process) moves them no more than an
// ordinary error does. Not a law: a straight line through what is flat while memory-bound and
// steeper once compute-bound; where the scheduler works, it is within some ten per cent.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "scheduler/scheduler.hpp"

namespace spud::scheduler {

// Thread-compatible.
class CostModel {
 public:
  // Seconds: per step, decode row, prefill row, position of context. A guess that the first few
  // steps overrule.
  struct Coefficients {
    double fixed = 2e-3;
    double decode_row = 3e-4;
    double prefill_row = 2e-4;
    double context_token = 5e-8;
  };

  CostModel() : CostModel(Coefficients{}) {}
  explicit CostModel(const Coefficients& guess);

  double predict_s(std::int64_t decode_rows, std::int64_t prefill_rows,
                   std::int64_t context_tokens) const noexcept;
  void observe(const StepCost& cost) noexcept;

  Coefficients coefficients() const noexcept;
  // Typical relative error of predictions lately.
  double relative_error() const noexcept { return spread_; }
  std::int64_t num_observed() const noexcept { return num_observed_; }

 private:
  static constexpr std::size_t kSize = 4;
  using Vector = std::array<double, kSize>;

  static Vector features(std::int64_t decode_rows, std::int64_t prefill_rows,
                         std::int64_t context_tokens) noexcept;
  void bound_covariance() noexcept;

  Vector scale_;  // the guess: everything below is relative to it
  Vector factor_{1, 1, 1, 1};
  std::array<Vector, kSize> covariance_{};
  double spread_ = 1;
  std::int64_t num_observed_ = 0;
};

}  // namespace spud::scheduler
