// SPDX-License-Identifier: Apache-2.0
// Each function reads one block. Layouts (byte offsets) stand above each; "half" is IEEE binary16.
#include <cstdint>

#include "quantize/blocks.hpp"
#include "quantize/quantize.hpp"

namespace spud::quantize {
namespace {

using internal::byte_at;
using internal::kIq4Levels;
using internal::load;
using internal::load_half;
using tensor::DType;

using BlockReader = void (*)(const std::byte* block, float* out) noexcept;

void read_f32(const std::byte* block, float* out) noexcept { *out = load<float>(block); }
void read_f16(const std::byte* block, float* out) noexcept { *out = load_half(block); }
void read_bf16(const std::byte* block, float* out) noexcept {
  *out = bfloat16_to_float(load<std::uint16_t>(block));
}
void read_f64(const std::byte* block, float* out) noexcept {
  *out = static_cast<float>(load<double>(block));
}

// half d | 32 x int8
void read_q8_0(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(load<std::int8_t>(block + 2 + i)) * d;
}

// half d | 16 bytes: value i in the low, i + 16 in the high nibble
void read_q4_0(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  for (int i = 0; i < 16; ++i) {
    const int packed = byte_at(block + 2 + i);
    out[i] = static_cast<float>((packed & 15) - 8) * d;
    out[i + 16] = static_cast<float>((packed >> 4) - 8) * d;
  }
}

// half d | half m | nibbles as Q4_0
void read_q4_1(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  const float m = load_half(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int packed = byte_at(block + 4 + i);
    out[i] = static_cast<float>(packed & 15) * d + m;
    out[i + 16] = static_cast<float>(packed >> 4) * d + m;
  }
}

// Value i (0..31) of nibbles at `nibbles` with its fifth bit in `high`.
int five_bits(const std::byte* nibbles, std::uint32_t high, int i) noexcept {
  const int packed = byte_at(nibbles + (i & 15));
  return (i < 16 ? packed & 15 : packed >> 4) | static_cast<int>(((high >> i) & 1U) << 4);
}

// half d | u32 fifth bits | nibbles
void read_q5_0(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  const auto high = load<std::uint32_t>(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(five_bits(block + 6, high, i) - 16) * d;
}

// half d | half m | u32 fifth bits | nibbles
void read_q5_1(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  const float m = load_half(block + 2);
  const auto high = load<std::uint32_t>(block + 4);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(five_bits(block + 8, high, i)) * d + m;
}

// half d | 16 bytes of indices into the levels, nibbles as Q4_0
void read_iq4_nl(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  for (int i = 0; i < 16; ++i) {
    const unsigned packed = byte_at(block + 2 + i);
    out[i] = d * static_cast<float>(kIq4Levels[packed & 15U]);
    out[i + 16] = d * static_cast<float>(kIq4Levels[packed >> 4]);
  }
}

// 16 bytes: low nibble scale, high nibble min, of 16 values | 64 bytes of 2-bit values | half d |
// half dmin. Byte k of each 32-byte half holds values k, k+32, k+64, k+96 of its 128.
void read_q2_k(const std::byte* block, float* out) noexcept {
  const float d = load_half(block + 80);
  const float dmin = load_half(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int scale = byte_at(block + i / 16);
    const int half = i / 128;
    const int quad = (i % 128) / 32;
    const int q = (byte_at(block + 16 + half * 32 + i % 32) >> (2 * quad)) & 3;
    out[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) -
             dmin * static_cast<float>(scale >> 4);
  }
}

// 32 bytes of third bits | 64 bytes of 2-bit values | 12 bytes: 16 six-bit scales | half d.
// A clear third bit means minus four.
void read_q3_k(const std::byte* block, float* out) noexcept {
  const float d = load_half(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int s = i / 16;
    const int low = (byte_at(block + 96 + s % 8) >> (s < 8 ? 0 : 4)) & 15;
    const int high = (byte_at(block + 104 + s % 4) >> (2 * (s / 4))) & 3;
    const int scale = (low | (high << 4)) - 32;
    const int half = i / 128;
    const int quad = (i % 128) / 32;
    const int q = (byte_at(block + 32 + half * 32 + i % 32) >> (2 * quad)) & 3;
    const bool third = ((byte_at(block + i % 32) >> (half * 4 + quad)) & 1) != 0;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(third ? q : q - 4);
  }
}

struct ScaleMin {
  float scale;
  float min;
};

// Pair j (0..7) of the 12 bytes in which Q4_K and Q5_K pack eight 6-bit scales and mins.
ScaleMin scale_min(const std::byte* scales, int j) noexcept {
  if (j < 4) {
    return {static_cast<float>(byte_at(scales + j) & 63),
            static_cast<float>(byte_at(scales + j + 4) & 63)};
  }
  const int packed = byte_at(scales + j + 4);
  return {static_cast<float>((packed & 15) | ((byte_at(scales + j - 4) >> 6) << 4)),
          static_cast<float>((packed >> 4) | ((byte_at(scales + j) >> 6) << 4))};
}

// half d | half dmin | 12 bytes scales | 128 bytes: low nibbles are 32 values, high the next 32
void read_q4_k(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin sm = scale_min(block + 4, j);
    const std::byte* q = block + 16 + (j / 2) * 32;
    for (int i = 0; i < 32; ++i) {
      const int packed = byte_at(q + i);
      const int value = j % 2 == 0 ? packed & 15 : packed >> 4;
      out[j * 32 + i] = d * sm.scale * static_cast<float>(value) - dmin * sm.min;
    }
  }
}

// half d | half dmin | 12 bytes scales | 32 bytes of fifth bits (bit j of byte i: value 32 j + i) |
// 128 bytes of nibbles as Q4_K
void read_q5_k(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin sm = scale_min(block + 4, j);
    const std::byte* q = block + 48 + (j / 2) * 32;
    for (int i = 0; i < 32; ++i) {
      const int packed = byte_at(q + i);
      const int fifth = (byte_at(block + 16 + i) >> j) & 1;
      const int value = (j % 2 == 0 ? packed & 15 : packed >> 4) | (fifth << 4);
      out[j * 32 + i] = d * sm.scale * static_cast<float>(value) - dmin * sm.min;
    }
  }
}

// 128 bytes of low nibbles | 64 bytes of high 2 bits | 16 x int8 scales | half d
void read_q6_k(const std::byte* block, float* out) noexcept {
  const float d = load_half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quad = (i % 128) / 32;
    const int low_packed = byte_at(block + half * 64 + (quad % 2) * 32 + i % 32);
    const int low = quad < 2 ? low_packed & 15 : low_packed >> 4;
    const int high = (byte_at(block + 128 + half * 32 + i % 32) >> (2 * quad)) & 3;
    const auto scale = static_cast<float>(load<std::int8_t>(block + 192 + i / 16));
    out[i] = d * scale * static_cast<float>((low | (high << 4)) - 32);
  }
}

// half d | u16: high 2 bits of 8 scales | 4 bytes: low 4 bits | 128 bytes of IQ4 indices
void read_iq4_xs(const std::byte* block, float* out) noexcept {
  const float d = load_half(block);
  const unsigned high = load<std::uint16_t>(block + 2);
  for (int j = 0; j < 8; ++j) {
    const unsigned low = (byte_at(block + 4 + j / 2) >> (4 * (j % 2))) & 15U;
    const unsigned scale = low | (((high >> (2 * j)) & 3U) << 4);
    const float dl = d * static_cast<float>(static_cast<int>(scale) - 32);
    for (int i = 0; i < 16; ++i) {
      const unsigned packed = byte_at(block + 8 + j * 16 + i);
      out[j * 32 + i] = dl * static_cast<float>(kIq4Levels[packed & 15U]);
      out[j * 32 + i + 16] = dl * static_cast<float>(kIq4Levels[packed >> 4]);
    }
  }
}

BlockReader find_reader(DType type) noexcept {
  switch (type) {
    case DType::kF32:
      return read_f32;
    case DType::kF16:
      return read_f16;
    case DType::kBF16:
      return read_bf16;
    case DType::kF64:
      return read_f64;
    case DType::kQ8_0:
      return read_q8_0;
    case DType::kQ4_0:
      return read_q4_0;
    case DType::kQ4_1:
      return read_q4_1;
    case DType::kQ5_0:
      return read_q5_0;
    case DType::kQ5_1:
      return read_q5_1;
    case DType::kIQ4_NL:
      return read_iq4_nl;
    case DType::kQ2_K:
      return read_q2_k;
    case DType::kQ3_K:
      return read_q3_k;
    case DType::kQ4_K:
      return read_q4_k;
    case DType::kQ5_K:
      return read_q5_k;
    case DType::kQ6_K:
      return read_q6_k;
    case DType::kIQ4_XS:
      return read_iq4_xs;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_dequantize(DType type) noexcept { return find_reader(type) != nullptr; }

Result<void> dequantize(DType type, std::span<const std::byte> blocks, std::span<float> out) {
  const BlockReader read = find_reader(type);
  if (read == nullptr) {
    return fail(ErrorCode::kUnimplemented, "values of type number {} cannot be read as floats",
                static_cast<std::uint32_t>(type));
  }
  const auto bytes = tensor::bytes_for(type, out.size());
  if (!bytes || *bytes != blocks.size()) {
    return fail(ErrorCode::kInvalidArgument, "{} values of type {} do not fill {} bytes",
                out.size(), tensor::to_string(type), blocks.size());
  }
  const tensor::DTypeTraits& t = tensor::traits(type);
  const std::byte* block = blocks.data();
  for (std::size_t i = 0; i < out.size(); i += t.block_values, block += t.block_bytes) {
    read(block, &out[i]);
  }
  return {};
}

}  // namespace spud::quantize
