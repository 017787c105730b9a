// SPDX-License-Identifier: Apache-2.0
// Cosines and sines of the rotary position embedding (Su et al. 2021). Angles are computed in
// double from the position alone, so that a position's rotation never depends on how the text was
// cut into batches, and long contexts lose no precision.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder_spec.hpp"

namespace spud::model {

// Immutable; thread-safe.
class RopeTable {
 public:
  // `factors`: divisors of the frequencies, [dim / 2] or empty.
  RopeTable(const RopeSpec& spec, std::span<const float> factors);

  std::int64_t dim() const noexcept { return dim_; }
  bool interleaved() const noexcept { return interleaved_; }
  // dim / 2 pairs (cos, sin).
  void fill(std::int64_t position, float* cos_sin) const noexcept;

 private:
  std::int64_t dim_;
  bool interleaved_;
  std::vector<double> frequencies_;  // radians per position
};

}  // namespace spud::model
