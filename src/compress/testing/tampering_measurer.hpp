// SPDX-License-Identifier: Apache-2.0
// For tests of the chain: passes everything on to another measurer and lets a test change what
// comes back, to see that the chain believes no figure it has not checked.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "compress/measurer.hpp"

namespace spud::compress::testing {

struct Tampering {
  // Called with each candidate's measurement before the chain sees it.
  std::function<void(Measured&)> measured;
  std::function<Result<void>()> before_measure;
  std::function<SpeedComparison()> speed;  // instead of the real one
};

class TamperingMeasurer final : public Measurer {
 public:
  TamperingMeasurer(std::unique_ptr<Measurer> inner, Tampering tampering)
      : inner_(std::move(inner)), tampering_(std::move(tampering)) {}

  const std::vector<DataUse>& data() const override { return inner_->data(); }
  const quality::SequenceSet& validation() const override { return inner_->validation(); }
  const quality::SequenceSet& holdout() const override { return inner_->holdout(); }
  Result<std::vector<quality::ChoiceResult>> reference_choices() override {
    return inner_->reference_choices();
  }
  Result<void> check_instrument() override { return inner_->check_instrument(); }
  Result<Measured> measure(FilePtr candidate, const quality::Budget& budget,
                           const quality::Measurement* last_accepted) override {
    if (tampering_.before_measure) {
      SPUD_TRY(tampering_.before_measure());
    }
    SPUD_TRY(Measured measured, inner_->measure(std::move(candidate), budget, last_accepted));
    if (tampering_.measured) tampering_.measured(measured);
    return measured;
  }
  Result<quality::Measurement> measure_holdout(FilePtr artifact) override {
    return inner_->measure_holdout(std::move(artifact));
  }
  Result<SpeedComparison> compare_speed(FilePtr baseline, FilePtr candidate,
                                        const SpeedPlan& plan) override {
    if (tampering_.speed) return tampering_.speed();
    return inner_->compare_speed(std::move(baseline), std::move(candidate), plan);
  }
  Result<std::uint64_t> peak_memory(FilePtr candidate) override {
    return inner_->peak_memory(std::move(candidate));
  }
  Calibration& calibration() override { return inner_->calibration(); }
  std::string environment() const override { return inner_->environment(); }

 private:
  std::unique_ptr<Measurer> inner_;
  Tampering tampering_;
};

inline MeasurerFactory tamper(MeasurerFactory inner, Tampering tampering) {
  return [inner = std::move(inner), tampering = std::move(tampering)](
             const MeasurerContext& context) -> Result<std::unique_ptr<Measurer>> {
    SPUD_TRY(auto real, inner(context));
    return std::make_unique<TamperingMeasurer>(std::move(real), tampering);
  };
}

}  // namespace spud::compress::testing
