// SPDX-License-Identifier: Apache-2.0
// Reads the block of a quantised GGUF type as integers and scales, without multiplying them: what
// packing needs. (quantize/ turns blocks into floats; here the quants must survive as they are.)
// Included by packing.cpp only.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/packed_layout.hpp"

namespace spud::kernels {

struct FileBlock {
  std::uint8_t values[256];   // as stored in the packed form: unsigned, before the lut
  std::uint16_t d;            // f16 bits
  std::uint16_t min;          // f16 bits of what is *added*; super types: -dmin
  std::int8_t sub_scale[16];  // super types, in order of columns
  std::uint8_t sub_min[16];
};

template <Form F>
constexpr std::int64_t file_block_bytes() {
  if (F == kFormQ8_0) return 34;
  if (F == kFormQ4_0 || F == kFormIQ4_NL) return 18;
  if (F == kFormQ4_1) return 20;
  if (F == kFormQ5_0) return 22;
  if (F == kFormQ5_1) return 24;
  if (F == kFormQ4_K) return 144;
  if (F == kFormQ5_K) return 176;
  if (F == kFormQ6_K) return 210;
  if (F == kFormQ2_K) return 84;
  if (F == kFormQ3_K) return 110;
  return 136;  // IQ4_XS
}

inline std::uint16_t load_u16(const std::uint8_t* at) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

// 16 bytes -> 32 values: low nibbles first, then high nibbles.
inline void read_nibbles(const std::uint8_t* in, std::uint8_t* out, std::int64_t half) noexcept {
  for (std::int64_t i = 0; i < half; ++i) {
    out[i] = in[i] & 15U;
    out[half + i] = in[i] >> 4;
  }
}

// The 6-bit scales and minima of Q4_K and Q5_K: 12 bytes for 8 of each.
inline void read_k_scales(const std::uint8_t* in, FileBlock& out) noexcept {
  for (int j = 0; j < 4; ++j) {
    out.sub_scale[j] = static_cast<std::int8_t>(in[j] & 63U);
    out.sub_min[j] = in[j + 4] & 63U;
    out.sub_scale[j + 4] = static_cast<std::int8_t>((in[j + 8] & 15U) | (in[j] >> 6 << 4));
    out.sub_min[j + 4] = static_cast<std::uint8_t>((in[j + 8] >> 4) | (in[j + 4] >> 6 << 4));
  }
}

// Two bits of each of 256 values from 64 bytes (Q2_K, Q3_K): value 128 n + 32 j + l is in byte
// 32 n + l at bit 2 j.
inline void read_two_bits(const std::uint8_t* in, std::uint8_t* out) noexcept {
  for (int v = 0; v < 256; ++v) {
    out[v] = (in[v / 128 * 32 + v % 32] >> (v % 128 / 32 * 2)) & 3U;
  }
}

inline void read_q6_k(const std::uint8_t* in, FileBlock& out) noexcept {
  const std::uint8_t* high = in + 128;
  for (int v = 0; v < 256; ++v) {
    const int part = v / 128;  // 64 bytes of low nibbles, 32 of high bits each
    const int lane = v % 128;  // nibble: lanes 0-63 low, 64-127 high
    const unsigned low = (in[64 * part + lane % 64] >> (lane < 64 ? 0 : 4)) & 15U;
    const unsigned top = (high[32 * part + lane % 32] >> (lane / 32 * 2)) & 3U;
    out.values[v] = static_cast<std::uint8_t>(low | (top << 4));
  }
  std::memcpy(out.sub_scale, in + 192, 16);
  out.d = load_u16(in + 208);
}

inline void read_q3_k(const std::uint8_t* in, FileBlock& out) noexcept {
  read_two_bits(in + 32, out.values);
  for (int v = 0; v < 256; ++v) {
    const unsigned top = (in[v % 32] >> (v / 32)) & 1U;
    out.values[v] = static_cast<std::uint8_t>(out.values[v] | (top << 2));
  }
  const std::uint8_t* scales = in + 96;
  for (int i = 0; i < 16; ++i) {
    const unsigned low = (scales[i % 8] >> (i < 8 ? 0 : 4)) & 15U;
    const unsigned top = (scales[8 + i % 4] >> (i / 4 * 2)) & 3U;
    out.sub_scale[i] = static_cast<std::int8_t>(static_cast<int>(low | (top << 4)) - 32);
  }
  out.d = load_u16(in + 108);
}

inline void read_q2_k(const std::uint8_t* in, FileBlock& out) noexcept {
  read_two_bits(in + 16, out.values);
  for (int i = 0; i < 16; ++i) {
    out.sub_scale[i] = static_cast<std::int8_t>(in[i] & 15U);
    out.sub_min[i] = in[i] >> 4;
  }
  out.d = load_u16(in + 80);
  out.min = load_u16(in + 82) ^ 0x8000U;
}

inline void read_iq4_xs(const std::uint8_t* in, FileBlock& out) noexcept {
  out.d = load_u16(in);
  const unsigned high = load_u16(in + 2);
  for (int b = 0; b < 8; ++b) {
    const unsigned low = (in[4 + b / 2] >> (b % 2 * 4)) & 15U;
    const unsigned top = (high >> (2 * b)) & 3U;
    out.sub_scale[b] = static_cast<std::int8_t>(static_cast<int>(low | (top << 4)) - 32);
    read_nibbles(in + 8 + 16 * b, out.values + 32 * b, 16);
  }
}

inline void read_k_quant(const std::uint8_t* in, bool five_bits, FileBlock& out) noexcept {
  out.d = load_u16(in);
  out.min = load_u16(in + 2) ^ 0x8000U;
  read_k_scales(in + 4, out);
  const std::uint8_t* low = in + (five_bits ? 48 : 16);
  for (int part = 0; part < 4; ++part) {
    read_nibbles(low + 32 * part, out.values + 64 * part, 32);
  }
  if (!five_bits) return;
  const std::uint8_t* high = in + 16;
  for (int v = 0; v < 256; ++v) {
    const unsigned top = (high[v % 32] >> (v / 32)) & 1U;
    out.values[v] = static_cast<std::uint8_t>(out.values[v] | (top << 4));
  }
}

// The types of 32 values: d, min if any, 32 high bits if 5 bits, then nibbles or bytes.
template <Form F>
inline void read_small(const std::uint8_t* in, FileBlock& out) noexcept {
  out.d = load_u16(in);
  in += 2;
  if constexpr (F.mins) {
    out.min = load_u16(in);
    in += 2;
  }
  if constexpr (F.bits == 8) {
    for (int i = 0; i < 32; ++i) out.values[i] = in[i] ^ 0x80U;  // signed -> plus 128
  } else {
    read_nibbles(in + (F.bits == 5 ? 4 : 0), out.values, 16);
  }
  if constexpr (F.bits == 5) {
    std::uint32_t high = 0;
    std::memcpy(&high, in, 4);
    for (int i = 0; i < 32; ++i) {
      out.values[i] = static_cast<std::uint8_t>(out.values[i] | (((high >> i) & 1U) << 4));
    }
  }
}

// Returns the bytes read.
template <Form F>
inline std::int64_t read_file_block(const std::uint8_t* in, FileBlock& out) noexcept {
  if constexpr (F == kFormQ6_K) {
    read_q6_k(in, out);
  } else if constexpr (F == kFormQ3_K) {
    read_q3_k(in, out);
  } else if constexpr (F == kFormQ2_K) {
    read_q2_k(in, out);
  } else if constexpr (F == kFormIQ4_XS) {
    read_iq4_xs(in, out);
  } else if constexpr (F.super) {
    read_k_quant(in, F.bits == 5, out);
  } else {
    read_small<F>(in, out);
  }
  return file_block_bytes<F>();
}

}  // namespace spud::kernels
