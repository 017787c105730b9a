// SPDX-License-Identifier: Apache-2.0
// How the keys and values of one page, layer and KV head lie in memory: a *block*, written by
// KvKernels::store one position at a time and read by KvKernels::attention. The layouts are those
// that attention reads fastest, so nothing is rearranged on the way:
//
//   f16   keys [head_dim][32] | values [32][head_dim]
//         K is transposed: the scores of 32 positions are a few vectors per dimension
//   int8  keys [head_dim/4][32][4] | values [8][head_dim][4] | key scales [32] | value scales [32]
//         groups of 4 dimensions (keys) or of 4 positions (values), as byte dot products want them.
//         Keys are stored as k + 128 (the unsigned side of the product), values signed; a scale is
//         F16, one per position: x = scale * q, |q| <= 127. A position that held something not
//         finite has an infinite scale. Keys and values are rotated before (kv_rotation), which
//         spreads a large value over the head: with one scale for all of it, that is what keeps
//         the others' bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spud::kernels {

inline constexpr std::int64_t kPageTokens = 32;

enum class KvType : std::uint8_t { kF16, kInt8 };
inline constexpr std::size_t kNumKvTypes = 2;
// Half the memory and less time than F16; what it costs in quality is in docs/adr/0005.
inline constexpr KvType kDefaultKvType = KvType::kInt8;

const char* to_string(KvType type) noexcept;

// Each so many values of a head go through a Walsh-Hadamard transform times kv_rotation_scale: a
// rotation, which is its own inverse and leaves q.k as it is.
constexpr std::int64_t kv_rotation(std::int64_t head_dim) noexcept { return head_dim & -head_dim; }
constexpr float kv_rotation_scale(std::int64_t size) noexcept {
  constexpr float kRootOfHalf = 0.70710678F;
  float scale = 1;
  for (; size >= 4; size /= 4) scale *= 0.5F;
  return size == 2 ? scale * kRootOfHalf : scale;
}

// A multiple of 64 for every head_dim that is a multiple of 16.
constexpr std::size_t kv_block_bytes(KvType type, std::int64_t head_dim) noexcept {
  const auto values = static_cast<std::size_t>(2 * kPageTokens * head_dim);
  return type == KvType::kF16 ? 2 * values : values + 2 * kPageTokens * sizeof(std::uint16_t);
}

// Where things are in an int8 block, in bytes.
struct Int8KvLayout {
  std::int64_t head_dim;

  static constexpr std::int64_t kKeyGroupBytes = 4 * kPageTokens;
  constexpr std::int64_t value_group_bytes() const noexcept { return 4 * head_dim; }

  constexpr std::int64_t key(std::int64_t dim, std::int64_t slot) const noexcept {
    return dim / 4 * kKeyGroupBytes + 4 * slot + dim % 4;
  }
  constexpr std::int64_t values() const noexcept { return kPageTokens * head_dim; }
  constexpr std::int64_t value(std::int64_t dim, std::int64_t slot) const noexcept {
    return values() + slot / 4 * value_group_bytes() + 4 * dim + slot % 4;
  }
  constexpr std::int64_t key_scales() const noexcept { return 2 * values(); }
  constexpr std::int64_t value_scales() const noexcept { return key_scales() + 2 * kPageTokens; }
};

}  // namespace spud::kernels
