// SPDX-License-Identifier: Apache-2.0
#include "model/rope.hpp"

#include <cmath>

namespace spud::model {

RopeTable::RopeTable(const RopeSpec& spec, std::span<const float> factors)
    : dim_(spec.dim), interleaved_(spec.interleaved) {
  const auto half = static_cast<std::size_t>(spec.dim / 2);
  frequencies_.reserve(half);
  for (std::size_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(spec.dim);
    const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[i]);
    frequencies_.push_back(std::pow(spec.base, exponent) * spec.position_scale / factor);
  }
}

void RopeTable::fill(std::int64_t position, float* cos_sin) const noexcept {
  for (const double frequency : frequencies_) {
    const double angle = static_cast<double>(position) * frequency;
    *cos_sin++ = static_cast<float>(std::cos(angle));
    *cos_sin++ = static_cast<float>(std::sin(angle));
  }
}

}  // namespace spud::model
