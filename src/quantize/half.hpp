// SPDX-License-Identifier: Apache-2.0
// 16-bit floats as bits: IEEE half and bfloat16, both ways, rounding to nearest even. Plain integer
// arithmetic so that every machine and compiler gives the same bits (no F16C needed).
#pragma once

#include <bit>
#include <cstdint>

namespace spud::quantize {

inline constexpr float kMaxHalf = 65504.0F;

constexpr float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  if (magnitude >= 0x7C00U) {  // infinity, NaN (payload kept)
    return std::bit_cast<float>(sign | 0x7F800000U | ((magnitude & 0x3FFU) << 13));
  }
  if (magnitude >= 0x0400U) {  // normal: only the exponent's bias differs, 127 - 15
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
  }
  const float value = static_cast<float>(magnitude) * 0x1p-24F;  // subnormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

constexpr std::uint16_t float_to_half(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);   // NaN
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // >= 65520
  if (magnitude < 0x38800000U) {  // below 2^-14: subnormal half
    // Adding 0.5 puts the half's unit (2^-24) at float's last place, so the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

constexpr float bfloat16_to_float(std::uint16_t value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

constexpr std::uint16_t float_to_bfloat16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {  // NaN stays NaN
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace spud::quantize
