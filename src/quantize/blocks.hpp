// SPDX-License-Identifier: Apache-2.0
// What the block formats share: little-endian fields at byte offsets, the 16 levels of IQ4, and a
// quantised block of 32 values before it is packed. Internal to quantize/; the layouts are
// described beside the code that reads them (dequantize.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quantize/half.hpp"
#include "tensor/dtype.hpp"

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

// Index of the level nearest to `value`.
inline std::uint8_t nearest_iq4(float value) noexcept {
  std::uint8_t index = 0;
  for (std::size_t i = 0; i + 1 < kIq4Levels.size(); ++i) {
    const float middle = 0.5F * static_cast<float>(kIq4Levels[i] + kIq4Levels[i + 1]);
    index = static_cast<std::uint8_t>(index + (value > middle ? 1 : 0));
  }
  return index;
}

inline constexpr std::size_t kBlock = 32;  // values in a block of every type we write

// value i = scale * level(codes[i]) + offset, where the level depends on the type: code - 8 (Q4_0),
// code - 16 (Q5_0), the code as int8 (Q8_0), kIq4Levels[code] (IQ4_NL), the code itself (Q4_1,
// Q5_1).
struct Block {
  float scale = 0;
  float offset = 0;
  std::array<std::uint8_t, kBlock> codes{};
};

// Whether scale and offset survive as half floats.
bool fits_half(const Block& block) noexcept;
// Rounds scale and offset to half and packs; for Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL.
void store_block(tensor::DType type, const Block& block, std::byte* out) noexcept;

// The rounding of GGUF's reference: scale from the extreme value, codes by rounding.
Block reference_block(tensor::DType type, const float* x) noexcept;
// Scale searched to minimise sum w (x - value)^2; never worse than the reference (by that sum).
// Weights are finite, not negative and not all zero.
Block search_block(tensor::DType type, const float* x, const float* weights) noexcept;
// The part of it for Q4_1 and Q5_1.
Block search_affine_block(int max_code, const float* x, const float* weights) noexcept;

}  // namespace spud::quantize::internal
