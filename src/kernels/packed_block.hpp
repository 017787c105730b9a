// SPDX-License-Identifier: Apache-2.0
// One row's view of a packed block, byte by byte: the scalar definition of the layout, used to
// pack, to read rows back and by the scalar product. Included by baseline files only.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/half.hpp"
#include "kernels/packed_layout.hpp"

namespace spud::kernels {

// Where byte `column` of `row` lies in its group, and the group.
constexpr std::int64_t lane_of(std::int64_t row, std::int64_t column) {
  return 4 * row + column % 4;
}
constexpr std::int64_t group_of(std::int64_t column) { return column / 4; }

// Bit 0 of each of the 4 bytes of a word, as 4 bits in order.
constexpr unsigned low_bits(std::uint32_t word) {
  const std::uint32_t x = word & 0x01010101U;
  return (x | (x >> 7) | (x >> 14) | (x >> 21)) & 15U;
}

// Stores the 32 values of `row` (before the table of the lut types), 4 columns of a group at a
// time. `quants` starts zeroed: rows share the bytes of the masks.
template <Form F>
inline void put_values(std::uint8_t* quants, std::int64_t row,
                       const std::uint8_t* values) noexcept {
  std::uint32_t words[kGroups];
  std::memcpy(words, values, sizeof words);
  const auto store = [&](std::int64_t line, std::uint32_t word) {
    std::memcpy(quants + 64 * line + 4 * row, &word, 4);
  };
  if constexpr (F.bits == 8) {
    for (int g = 0; g < 8; ++g) store(g, words[g]);
  } else if constexpr (F.bits >= 4) {
    constexpr std::uint32_t kLow = 0x0F0F0F0FU;
    for (int i = 0; i < 4; ++i) store(i, (words[i] & kLow) | ((words[i + 4] & kLow) << 4));
  } else {
    constexpr std::uint32_t kLow = 0x03030303U;
    for (int h = 0; h < 2; ++h) {
      std::uint32_t word = 0;
      for (int f = 0; f < 4; ++f) word |= (words[4 * h + f] & kLow) << (2 * f);
      store(h, word);
    }
  }
  if constexpr (F.bits == 6) {
    for (int h = 0; h < 2; ++h) {
      std::uint32_t word = 0;
      for (int f = 0; f < 4; ++f) word |= ((words[4 * h + f] >> 4) & 0x03030303U) << (2 * f);
      store(4 + h, word);
    }
  }
  if constexpr (F.bits == 5 || F.bits == 3) {
    for (int g = 0; g < 8; ++g) {  // bits 4 row .. 4 row + 3 of the group's mask
      std::uint8_t& byte = quants[64 * (F.bits - 1) + 8 * g + row / 2];
      byte |= static_cast<std::uint8_t>(low_bits(words[g] >> (F.bits - 1)) << (row % 2 * 4));
    }
  }
}

// The unsigned value u of w = scale * (u - offset) + min, table applied.
template <Form F>
inline std::uint8_t value_at(const std::uint8_t* quants, std::int64_t row,
                             std::int64_t column) noexcept {
  const std::int64_t g = group_of(column);
  const std::int64_t lane = lane_of(row, column);
  unsigned u = 0;
  if constexpr (F.bits == 8) {
    u = quants[64 * g + lane];
  } else if constexpr (F.bits >= 4) {
    u = (quants[64 * (g % 4) + lane] >> (g < 4 ? 0 : 4)) & 15U;
  } else {
    u = (quants[64 * (g / 4) + lane] >> (2 * (g % 4))) & 3U;
  }
  if constexpr (F.bits == 6) {
    u |= ((quants[256 + 64 * (g / 4) + lane] >> (2 * (g % 4))) & 3U) << 4;
  }
  if constexpr (F.bits == 5 || F.bits == 3) {
    const std::uint8_t* masks = quants + 64 * (F.bits - 1) + 8 * g;
    u |= ((masks[lane / 8] >> (lane % 8)) & 1U) << (F.bits - 1);
  }
  if constexpr (F.lut) u = kIq4Values[u];
  return static_cast<std::uint8_t>(u);
}

struct ScaleAndMin {
  float scale;
  float min;
};

inline float load_half(const std::uint8_t* at) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return half_to_float(bits);
}

// Scale and minimum of sub-block `sub` of `block`.
template <Form F>
inline ScaleAndMin scale_at(const std::uint8_t* panel, std::int64_t row, std::int64_t block,
                            std::int64_t sub) noexcept {
  const std::uint8_t* unit = panel + F.scales_at(block);
  if constexpr (!F.super) {
    return {load_half(unit + 2 * row), F.mins ? load_half(unit + 32 + 2 * row) : 0.0F};
  } else {
    constexpr std::int64_t kParts = F.mins ? 2 : 1;
    const std::uint8_t* subs =
        unit + 32 * kParts + (block % kSuperBlocks * F.subs() + sub) * 16 * kParts;
    const auto sc = static_cast<std::int8_t>(subs[row]);
    const float scale = load_half(unit + 2 * row) * static_cast<float>(sc);
    const float min =
        F.mins ? load_half(unit + 32 + 2 * row) * static_cast<float>(subs[16 + row]) : 0.0F;
    return {scale, min};
  }
}

}  // namespace spud::kernels
