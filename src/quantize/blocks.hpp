// SPDX-License-Identifier: Apache-2.0
// What the block formats share: little-endian fields at byte offsets, and the 16 levels of IQ4.
// Internal to quantize/; the layouts are described beside the code that reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quantize/half.hpp"

namespace spud::quantize::internal {

// The 4-bit non-linear levels of IQ4_NL and IQ4_XS (part of the file format).
inline constexpr std::array<std::int8_t, 16> kIq4Levels = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

inline std::uint8_t byte_at(const std::byte* p) noexcept {
  return std::to_integer<std::uint8_t>(*p);
}

template <typename T>
T load(const std::byte* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

inline float load_half(const std::byte* p) noexcept {
  return half_to_float(load<std::uint16_t>(p));
}

inline void store_half(std::byte* p, float value) noexcept {
  const std::uint16_t half = float_to_half(value);
  std::memcpy(p, &half, sizeof(half));
}

}  // namespace spud::quantize::internal
