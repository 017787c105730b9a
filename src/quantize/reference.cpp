// SPDX-License-Identifier: Apache-2.0
// Round to nearest, bit for bit as GGUF's reference does it. The order of operations matters: the
// product with the inverse scale, the added half and the truncation are each rounded as written.
#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "quantize/blocks.hpp"

namespace spud::quantize::internal {
namespace {

using tensor::DType;

float inverse_or_zero(float scale) noexcept { return scale != 0 ? 1.0F / scale : 0.0F; }

// The value with the largest magnitude, the first of equals, with its sign.
float signed_extreme(const float* x) noexcept {
  float largest = 0;
  float extreme = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (std::fabs(x[i]) > largest) {
      largest = std::fabs(x[i]);
      extreme = x[i];
    }
  }
  return extreme;
}

Block reference_q8_0(const float* x) noexcept {
  Block block;
  block.scale = std::fabs(signed_extreme(x)) / 127.0F;
  const float inverse = inverse_or_zero(block.scale);
  for (std::size_t i = 0; i < kBlock; ++i) {
    block.codes[i] =
        static_cast<std::uint8_t>(static_cast<std::int8_t>(std::round(x[i] * inverse)));
  }
  return block;
}

// Q4_0 (half_range 8) and Q5_0 (16): the extreme value gets the code 0, the level -half_range.
Block reference_symmetric(const float* x, int half_range) noexcept {
  Block block;
  block.scale = signed_extreme(x) / static_cast<float>(-half_range);
  const float inverse = inverse_or_zero(block.scale);
  const float shift = static_cast<float>(half_range) + 0.5F;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const int code = static_cast<int>(x[i] * inverse + shift);
    block.codes[i] = static_cast<std::uint8_t>(std::clamp(code, 0, 2 * half_range - 1));
  }
  return block;
}

Block reference_affine(const float* x, int max_code) noexcept {
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  Block block;
  block.scale = (*high - *low) / static_cast<float>(max_code);
  block.offset = *low;
  const float inverse = inverse_or_zero(block.scale);
  for (std::size_t i = 0; i < kBlock; ++i) {
    const int code = static_cast<int>((x[i] - *low) * inverse + 0.5F);
    block.codes[i] = static_cast<std::uint8_t>(std::clamp(code, 0, max_code));
  }
  return block;
}

// The extreme value gets the lowest level, -127, the others their nearest one.
Block reference_iq4_nl(const float* x) noexcept {
  Block block;
  block.scale = signed_extreme(x) / static_cast<float>(kIq4Levels[0]);
  const float inverse = inverse_or_zero(block.scale);
  for (std::size_t i = 0; i < kBlock; ++i) block.codes[i] = nearest_iq4(x[i] * inverse);
  return block;
}

}  // namespace

Block reference_block(DType type, const float* x) noexcept {
  switch (type) {
    case DType::kQ8_0:
      return reference_q8_0(x);
    case DType::kQ4_0:
      return reference_symmetric(x, 8);
    case DType::kQ5_0:
      return reference_symmetric(x, 16);
    case DType::kQ4_1:
      return reference_affine(x, 15);
    case DType::kQ5_1:
      return reference_affine(x, 31);
    case DType::kIQ4_NL:
      return reference_iq4_nl(x);
    default:
      break;
  }
  SPUD_CHECK(false);
  return {};
}

}  // namespace spud::quantize::internal
