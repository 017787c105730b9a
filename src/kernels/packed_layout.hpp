// SPDX-License-Identifier: Apache-2.0
// How packed weights and prepared activations lie in memory: one layout for all ISAs, made for
// 512-bit byte dot products and equally readable in 256-bit halves and byte by byte.
//
// A *panel* is 16 weight rows, the lanes of one 512-bit register. Of a panel, 32 columns are a
// *block*. One register holds 4 columns of all 16 rows, a *group*; a block has 8 groups:
//
//   group g, byte 4*r + j  =  row r, column 4*g + j          (r 0..15, j 0..3)
//
// so that one vpdpbusd with a broadcast of 4 activations advances 16 outputs by 4 columns, and
// nothing is ever summed across lanes. Values are stored unsigned, w = scale * (u - offset) [+
// min], because the instruction wants one unsigned side; the offset costs nothing: the accumulator
// starts at -offset * sum(activations), which prepare() has ready.
//
//   panel := units, padded to 64 bytes
//   unit  := scales of its blocks | quants of block 0 | quants of block 1 ..
//            of 2 blocks, 1 with minima, 8 of the "super" types; the last may have fewer
//   quants of a block, in bits per value:
//     8  8 x 64 B   group g
//     4  4 x 64 B   i: low nibbles = group i, high nibbles = group i + 4
//     5  as 4, then 8 x 8 B  g: bit b is the fifth bit of byte b of group g (a mask register)
//     6  as 4, then 2 x 64 B h: bits 2f..2f+1 are the high bits of group 4*h + f
//     2  2 x 64 B   h: bits 2f..2f+1 = group 4*h + f
//     3  as 2, then 8 x 8 B  g: bit b is the third bit of byte b of group g
//   scales of a block ("plain" types):   f16 d[16] | f16 min[16] if it has minima
//   scales of 8 blocks ("super" types):  f16 d[16] | f16 -dmin[16] if minima, then per sub-block of
//                                        32 or 16 columns: i8 sc[16] | u8 m[16] if minima;
//                                        scale = d * sc, min = -dmin * m
//
// The size is that of the file's blocks (Q4_K: 148 bytes for its 144). A matrix is read as one
// linear stream, which the hardware fetches ahead at the speed of memory. With scales in a stream
// of their own, or with a gap of ten lines at the end of each panel, it lost its way and one row of
// Q8_0 read 24 GB/s in place of 57 (Zen 4, two cores), 42 with software prefetch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spud::kernels {

// Raise it when anything above changes: packed weights kept on disk are of one version.
inline constexpr std::uint32_t kPackedLayoutVersion = 2;

inline constexpr std::int64_t kPanelRows = 16;
inline constexpr std::int64_t kBlock = 32;
inline constexpr std::int64_t kGroups = 8;       // of 4 columns, in a block
inline constexpr std::int64_t kSuperBlocks = 8;  // blocks that share a super scale

struct Form {
  int bits;
  int offset;  // a power of two, or 0
  int sub;     // columns per scale: 32 or 16
  bool super;
  bool mins;
  bool lut;  // the stored nibble is an index into kIq4Values

  bool operator==(const Form&) const = default;

  constexpr std::int64_t quant_bytes() const { return 64 * bits; }
  constexpr std::int64_t subs() const { return kBlock / sub; }
  constexpr std::int64_t unit_blocks() const { return super ? kSuperBlocks : mins ? 1 : 2; }
  // Of the blocks of a unit.
  constexpr std::int64_t scale_bytes() const {
    const std::int64_t parts = mins ? 2 : 1;
    return super ? 32 * parts + kSuperBlocks * subs() * 16 * parts : 64;
  }
  constexpr std::int64_t unit_bytes() const {
    return scale_bytes() + unit_blocks() * quant_bytes();
  }
  constexpr std::int64_t panel_bytes(std::int64_t blocks) const {
    const std::int64_t units = (blocks + unit_blocks() - 1) / unit_blocks();
    return (units * scale_bytes() + blocks * quant_bytes() + 63) / 64 * 64;
  }
  // Where a block's quants lie in its panel, and its scales (super types: those of its unit).
  constexpr std::int64_t quants_at(std::int64_t block) const {
    return block / unit_blocks() * unit_bytes() + scale_bytes() +
           block % unit_blocks() * quant_bytes();
  }
  constexpr std::int64_t scales_at(std::int64_t block) const {
    return block / unit_blocks() * unit_bytes() + (super ? 0 : block % unit_blocks() * 32);
  }
};

inline constexpr Form kFormQ8_0{8, 128, 32, false, false, false};
inline constexpr Form kFormQ4_0{4, 8, 32, false, false, false};
inline constexpr Form kFormQ4_1{4, 0, 32, false, true, false};
inline constexpr Form kFormQ5_0{5, 16, 32, false, false, false};
inline constexpr Form kFormQ5_1{5, 0, 32, false, true, false};
inline constexpr Form kFormIQ4_NL{4, 128, 32, false, false, true};
inline constexpr Form kFormQ4_K{4, 0, 32, true, true, false};
inline constexpr Form kFormQ5_K{5, 0, 32, true, true, false};
inline constexpr Form kFormQ6_K{6, 32, 16, true, false, false};
inline constexpr Form kFormQ2_K{2, 0, 16, true, true, false};
inline constexpr Form kFormQ3_K{3, 4, 16, true, false, false};
inline constexpr Form kFormIQ4_XS{4, 128, 32, true, false, true};

// The levels of the IQ4 types plus 128, so that they are unsigned like all others.
inline constexpr std::uint8_t kIq4Values[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                129, 141, 153, 166, 181, 197, 217, 241};

// The plain number types: panel = columns in order, each 16 values (rows) of the type.
enum class Plain { kF32, kF16, kBF16 };
constexpr std::int64_t plain_bytes(Plain type) { return type == Plain::kF32 ? 4 : 2; }

// A prepared row of int8 activations is one cache line per block of 32 columns: everything that a
// product needs of it lies at constant offsets from one pointer. x = scale * q; scaled_sum
// multiplies minima; offset_sum is what an accumulator of 8-bit weights starts from (shifted right
// for smaller offsets). The ..16 members are per half block, for types with a scale per 16 columns.
struct alignas(64) Int8Block {
  std::int8_t q[kBlock];
  float scale;              // max|x| / 127
  float scaled_sum;         // scale * sum(q)
  std::int32_t offset_sum;  // -128 * sum(q)
  float scaled_sum16[2];    // of columns 0-15, 16-31
  std::int32_t offset_sum16[2];
  std::int32_t unused;
};
static_assert(sizeof(Int8Block) == 64);

constexpr std::int64_t int8_blocks(std::int64_t k) { return (k + kBlock - 1) / kBlock; }
// Blocks from one row to the next: odd, so that the rows of a tile fall into different cache sets
// whatever the width (2048 columns would put every row's block into the same set).
constexpr std::int64_t int8_stride(std::int64_t k) { return int8_blocks(k) | 1; }
constexpr std::int64_t f32_row_bytes(std::int64_t k) { return (4 * k + 63) / 64 * 64; }

constexpr int log2_of(int power_of_two) {
  int log = 0;
  while ((1 << log) < power_of_two) ++log;
  return log;
}

}  // namespace spud::kernels
