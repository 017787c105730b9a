// SPDX-License-Identifier: Apache-2.0
// Products with AVX-512 VNNI. The layout (packed_layout.hpp) puts 16 weight rows in the lanes, so
// one vpdpbusd takes a register of weights and one broadcast of 4 activation bytes, straight from
// memory; no lane is ever summed with another. Per block of 32 columns and activation row:
//
//   i = -offset * sum(a)                              (prepared)
//   i += u[g] . a[g]              8 times vpdpbusd
//   out = fma(float(i), w_scale * a_scale, out)       [out = fma(w_min, a_scaled_sum, out)]
//
// 8 of 10 multiply-port instructions do integer work. The order of the float operations is that of
// the blocks for every path below, so a row's bits do not depend on m:
//   m <= kDirectRows  unpacks in registers, again for each 8 rows: the weights come from memory
//                     once, at its speed
//   more rows         unpacks a chunk of one panel to the first-level cache and multiplies it with
//                     tiles of up to kMaxTileRows rows: unpacking is paid once for all of them
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"
#include "kernels/packed_layout.hpp"
#include "kernels/packing.hpp"

namespace spud::kernels {
namespace {

constexpr int kDirectTileRows = 8;  // 16 at a time are no faster, and code for 9 to 16 more
// Measured on one Zen 4 core against a chunk: 16 rows of Q8_0 332 -> 354 GOP/s, Q4_0 303 -> 352,
// Q4_1 275 -> 320, Q5_0 299 -> 316, Q4_K 277 -> 314; 32 rows of Q4_0 327 -> 349, Q5_0 326 -> 324.
template <Form F>
constexpr int kDirectRows = F.bits == 4 ? 32 : 16;
constexpr int kMaxTileRows = 16;  // whose sums fill the registers
constexpr int kTileRows = 12;     // of many: the fastest
constexpr int kLockstepRows = 4;
constexpr std::int64_t kChunkBlocks = 48;  // 24 kB of bytes: 1536 columns in one go

inline __m512i load(const void* at) { return _mm512_loadu_si512(at); }
inline __m512i broadcast4(const std::int8_t* at) {
  std::int32_t four = 0;
  __builtin_memcpy(&four, at, 4);
  return _mm512_set1_epi32(four);
}

inline __m512 load_f16(const std::uint8_t* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

// One or two rows wait for memory only, and the hardware fetches a linear stream ahead at its
// speed. More rows read too slowly for it to run far ahead: while a panel is in work, the same
// place of the next one is asked into the second-level cache. Measured on two Zen 4 cores with
// weights in memory, without and with: Q8_0, 1 row 76 and 59 GB/s, 8 rows 375 and 680 GOP/s; Q4_0,
// 1 row 80 and 63 GB/s, 8 rows 547 and 700 GOP/s.
constexpr int kStreamRows = 2;
inline void prefetch_block(const std::uint8_t* at, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) _mm_prefetch(at + i, _MM_HINT_T1);
}

// The 8 groups of a block as unsigned bytes.
template <Form F>
[[gnu::always_inline]] inline void load_block(const std::uint8_t* q, __m512i (&w)[8]) {
  if constexpr (F.bits == 8) {
    for (int g = 0; g < 8; ++g) w[g] = load(q + 64 * g);
    return;
  }
  if constexpr (F.bits >= 4) {
    const __m512i low = _mm512_set1_epi8(15);
    for (int i = 0; i < 4; ++i) {
      const __m512i two = load(q + 64 * i);
      w[i] = _mm512_and_si512(two, low);
      w[i + 4] = _mm512_and_si512(_mm512_srli_epi16(two, 4), low);
    }
  } else {
    const __m512i low = _mm512_set1_epi8(3);
    for (int h = 0; h < 2; ++h) {
      const __m512i four = load(q + 64 * h);
      w[4 * h] = _mm512_and_si512(four, low);
      w[4 * h + 1] = _mm512_and_si512(_mm512_srli_epi16(four, 2), low);
      w[4 * h + 2] = _mm512_and_si512(_mm512_srli_epi16(four, 4), low);
      w[4 * h + 3] = _mm512_and_si512(_mm512_srli_epi16(four, 6), low);
    }
  }
  if constexpr (F.bits == 6) {
    const __m512i high = _mm512_set1_epi8(0x30);
    for (int h = 0; h < 2; ++h) {
      const __m512i four = load(q + 256 + 64 * h);
      __m512i* to = w + 4 * h;
      to[0] = _mm512_or_si512(to[0], _mm512_and_si512(_mm512_slli_epi16(four, 4), high));
      to[1] = _mm512_or_si512(to[1], _mm512_and_si512(_mm512_slli_epi16(four, 2), high));
      to[2] = _mm512_or_si512(to[2], _mm512_and_si512(four, high));
      to[3] = _mm512_or_si512(to[3], _mm512_and_si512(_mm512_srli_epi16(four, 2), high));
    }
  }
  if constexpr (F.bits == 5 || F.bits == 3) {
    const __m512i top = _mm512_set1_epi8(F.bits == 5 ? 16 : 4);
    for (int g = 0; g < 8; ++g) {
      std::uint64_t mask = 0;
      __builtin_memcpy(&mask, q + 64 * (F.bits - 1) + 8 * g, 8);
      w[g] = _mm512_mask_add_epi8(w[g], mask, w[g], top);
    }
  }
  if constexpr (F.lut) {
    const __m512i table =
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Values)));
    for (int g = 0; g < 8; ++g) w[g] = _mm512_shuffle_epi8(table, w[g]);
  }
}

struct Scales {
  __m512 scale;
  __m512 min;
};

// Scale (and minimum) of the 16 rows in sub-block `sub` of the unit's block `block`.
template <Form F>
[[gnu::always_inline]] inline Scales load_scales(const std::uint8_t* unit, std::int64_t block,
                                                 std::int64_t sub) {
  if constexpr (!F.super) {
    unit += 32 * block;  // 0 with minima
    if constexpr (F.mins) return {load_f16(unit), load_f16(unit + 32)};
    return {load_f16(unit), _mm512_setzero_ps()};
  } else {
    constexpr std::int64_t kParts = F.mins ? 2 : 1;
    const std::uint8_t* subs = unit + 32 * kParts + (block * F.subs() + sub) * 16 * kParts;
    const auto bytes = [](const std::uint8_t* at) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    };
    const __m512 sc = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(subs)));
    Scales out{_mm512_mul_ps(load_f16(unit), sc), _mm512_setzero_ps()};
    if constexpr (F.mins) {
      const __m512 m = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes(subs + 16)));
      out.min = _mm512_mul_ps(load_f16(unit + 32), m);
    }
    return out;
  }
}

// Adds one block's products with the blocks of R rows, which go in lockstep: a row's dot products
// are a chain that waits for itself. kOffset is the weights' (0 with minima).
template <bool kSub16, bool kMins, int kOffset, int R>
[[gnu::always_inline]] inline void add_group(const __m512i (&w)[8], const Scales* scales,
                                             const Int8Block* x, std::int64_t stride, __m512* acc) {
  constexpr int kSubs = kSub16 ? 2 : 1;
  for (int s = 0; s < kSubs; ++s) {
    __m512i sum[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Int8Block& row = x[r * stride];
      sum[r] = _mm512_setzero_si512();
      if constexpr (kOffset > 0) {
        const std::int32_t offset_sum = kSub16 ? row.offset_sum16[s] : row.offset_sum;
        sum[r] = _mm512_srai_epi32(_mm512_set1_epi32(offset_sum), 7 - log2_of(kOffset));
      }
    }
    for (int i = 0; i < 8 / kSubs; ++i) {
      const int g = s * 8 / kSubs + i;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        sum[r] = _mm512_dpbusd_epi32(sum[r], w[g], broadcast4(x[r * stride].q + 4 * g));
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Int8Block& row = x[r * stride];
      const __m512 scale = _mm512_mul_ps(scales[s].scale, _mm512_set1_ps(row.scale));
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), scale, acc[r]);
      if constexpr (kMins) {
        const float scaled_sum = kSub16 ? row.scaled_sum16[s] : row.scaled_sum;
        acc[r] = _mm512_fmadd_ps(scales[s].min, _mm512_set1_ps(scaled_sum), acc[r]);
      }
    }
  }
}

// Rows [kFirst, M), a few at a time.
template <bool kSub16, bool kMins, int kOffset, int M, int kFirst = 0>
[[gnu::always_inline]] inline void add_block(const __m512i (&w)[8], const Scales* scales,
                                             const Int8Block* x, std::int64_t stride,
                                             __m512 (&acc)[M]) {
  constexpr int kRows = M - kFirst < kLockstepRows ? M - kFirst : kLockstepRows;
  add_group<kSub16, kMins, kOffset, kRows>(w, scales, x + kFirst * stride, stride, acc + kFirst);
  if constexpr (kFirst + kRows < M) {
    add_block<kSub16, kMins, kOffset, M, kFirst + kRows>(w, scales, x, stride, acc);
  }
}

inline __mmask16 lanes_of(const MatmulArgs& args, std::int64_t n) {
  const std::int64_t rows = args.n_total - n;
  return static_cast<__mmask16>(rows >= kPanelRows ? 0xFFFF : (1 << rows) - 1);
}

// Of the unit that starts with block `first` of `blocks`; super types have whole units only.
template <Form F>
inline std::int64_t blocks_of_unit(std::int64_t first, std::int64_t blocks) {
  if (F.super || blocks - first >= F.unit_blocks()) return F.unit_blocks();
  return blocks - first;
}

// A whole panel with M rows, unpacked in registers.
template <Form F, int M>
void direct_panel(const MatmulArgs& args, const std::uint8_t* panel, std::int64_t first_row,
                  std::int64_t n) {
  const std::int64_t blocks = args.k / kBlock;
  const std::int64_t stride = int8_stride(args.k);
  const std::int64_t panel_bytes = F.panel_bytes(blocks);
  const auto* x = static_cast<const Int8Block*>(args.activations) + first_row * stride;
  __m512 acc[M];
  for (int r = 0; r < M; ++r) acc[r] = _mm512_setzero_ps();
  constexpr std::int64_t kStep = F.unit_bytes() / F.unit_blocks();
  const std::uint8_t* unit = panel;
  for (std::int64_t first = 0; first < blocks; first += F.unit_blocks(), unit += F.unit_bytes()) {
    const std::int64_t count = blocks_of_unit<F>(first, blocks);
    for (std::int64_t b = 0; b < count; ++b, ++x) {
      const std::uint8_t* q = unit + F.scale_bytes() + b * F.quant_bytes();
      if constexpr (M > kStreamRows) {
        if (first_row == 0) prefetch_block(unit + panel_bytes + b * kStep, kStep);
      }
      __m512i w[8];
      load_block<F>(q, w);
      Scales scales[F.subs()];
      for (int s = 0; s < F.subs(); ++s) scales[s] = load_scales<F>(unit, b, s);
      add_block<F.sub == 16, F.mins, F.offset>(w, scales, x, stride, acc);
    }
  }
  const __mmask16 lanes = lanes_of(args, n);
  float* out = args.out + first_row * args.out_stride + n;
  for (int r = 0; r < M; ++r) _mm512_mask_storeu_ps(out + r * args.out_stride, lanes, acc[r]);
}

// The last rows, at most M, in one go.
template <Form F, int M>
void direct_last_rows(const MatmulArgs& args, const std::uint8_t* panel, std::int64_t first_row,
                      std::int64_t n) {
  if constexpr (M > 0) {
    if (args.m - first_row == M) return direct_panel<F, M>(args, panel, first_row, n);
    direct_last_rows<F, M - 1>(args, panel, first_row, n);
  }
}

template <Form F>
void direct_rows(const MatmulArgs& args, const std::uint8_t* panel, std::int64_t n) {
  std::int64_t row = 0;
  for (; args.m - row > kDirectTileRows; row += kDirectTileRows) {
    direct_panel<F, kDirectTileRows>(args, panel, row, n);
  }
  direct_last_rows<F, kDirectTileRows>(args, panel, row, n);
}

// Up to kChunkBlocks blocks of one panel, ready for tiles: bytes, all with the offset 128 (or 0
// with minima), and scales as floats.
struct Chunk {
  const std::uint8_t* w;  // 512 bytes a block
  std::int64_t gap;       // after every second block
  const Scales* scales;   // one or two a block
  std::int64_t first;     // block
  std::int64_t blocks;
  const std::uint8_t* next;  // the same chunk of the next panel, packed
  std::int64_t next_step;    // bytes a block there
};

// M rows against a chunk. Partial sums between chunks live in `out`: storing a float and loading it
// again changes nothing.
template <bool kSub16, bool kMins, int M>
void tile(const MatmulArgs& args, const Chunk& chunk, std::int64_t first_row, std::int64_t n) {
  constexpr int kSubs = kSub16 ? 2 : 1;
  const __mmask16 lanes = lanes_of(args, n);
  const std::int64_t stride = int8_stride(args.k);
  const auto* x =
      static_cast<const Int8Block*>(args.activations) + first_row * stride + chunk.first;
  float* out = args.out + first_row * args.out_stride + n;
  __m512 acc[M];
  for (int r = 0; r < M; ++r) {
    acc[r] = chunk.first == 0 ? _mm512_setzero_ps()
                              : _mm512_maskz_loadu_ps(lanes, out + r * args.out_stride);
  }
  for (std::int64_t b = 0; b < chunk.blocks; ++b, ++x) {
    if (first_row == 0) {  // the first tile has the time to fetch the next panel (see above)
      prefetch_block(chunk.next + b * chunk.next_step, chunk.next_step);
    }
    const std::uint8_t* at = chunk.w + 512 * b + chunk.gap * (b / 2);
    __m512i w[8];
    for (int g = 0; g < 8; ++g) w[g] = load(at + 64 * g);
    add_block<kSub16, kMins, kMins ? 0 : 128>(w, chunk.scales + b * kSubs, x, stride, acc);
  }
  for (int r = 0; r < M; ++r) {
    _mm512_mask_storeu_ps(out + r * args.out_stride, lanes, acc[r]);
  }
}

// The last rows, at most kMaxTileRows: one tile of exactly that height.
template <bool kSub16, bool kMins, int M>
void last_tile(const MatmulArgs& args, const Chunk& chunk, std::int64_t first_row, std::int64_t n) {
  if constexpr (M > 0) {
    if (args.m - first_row == M) return tile<kSub16, kMins, M>(args, chunk, first_row, n);
    last_tile<kSub16, kMins, M - 1>(args, chunk, first_row, n);
  }
}

template <bool kSub16, bool kMins>
void chunk_rows(const MatmulArgs& args, const Chunk& chunk, std::int64_t n) {
  std::int64_t row = 0;
  for (; args.m - row > kMaxTileRows; row += kTileRows) {
    tile<kSub16, kMins, kTileRows>(args, chunk, row, n);
  }
  last_tile<kSub16, kMins, kMaxTileRows>(args, chunk, row, n);
}

template <Form F>
void chunked_panel(const MatmulArgs& args, const std::uint8_t* panel, std::int64_t n) {
  const std::int64_t blocks = args.k / kBlock;
  alignas(64) std::uint8_t bytes[F.bits == 8 ? 64 : kChunkBlocks * 512];
  alignas(64) Scales scales[kChunkBlocks * F.subs()];
  const __m512i to_128 = _mm512_set1_epi8(static_cast<char>(F.mins ? 0 : 128 - F.offset));
  for (std::int64_t first = 0; first < blocks; first += kChunkBlocks) {
    const std::int64_t count = blocks - first < kChunkBlocks ? blocks - first : kChunkBlocks;
    for (std::int64_t b = 0; b < count; ++b) {
      const std::int64_t in_unit = (first + b) % F.unit_blocks();
      const std::uint8_t* unit = panel + (first + b) / F.unit_blocks() * F.unit_bytes();
      for (int s = 0; s < F.subs(); ++s) {
        scales[b * F.subs() + s] = load_scales<F>(unit, in_unit, s);
      }
      if constexpr (F.bits != 8) {
        __m512i w[8];
        load_block<F>(panel + F.quants_at(first + b), w);
        for (int g = 0; g < 8; ++g) {
          _mm512_store_si512(bytes + 512 * b + 64 * g, _mm512_add_epi8(w[g], to_128));
        }
      }
    }
    const Chunk chunk{.w = F.bits == 8 ? panel + F.quants_at(first) : bytes,
                      .gap = F.bits == 8 ? F.scale_bytes() : 0,
                      .scales = scales,
                      .first = first,
                      .blocks = count,
                      .next = panel + F.panel_bytes(blocks) + F.scales_at(first),
                      .next_step = F.unit_bytes() / F.unit_blocks()};
    chunk_rows<F.sub == 16, F.mins>(args, chunk, n);
  }
}

#include "kernels/body/plain_avx512.inl.hpp"

struct Avx512 {
  template <Form F>
  static void matmul(const MatmulArgs& args) noexcept {
    const std::int64_t panel_bytes = F.panel_bytes(args.k / kBlock);
    const auto* panel =
        static_cast<const std::uint8_t*>(args.packed) + args.n_begin / kPanelRows * panel_bytes;
    for (std::int64_t n = args.n_begin; n < args.n_end; n += kPanelRows, panel += panel_bytes) {
      if (args.m <= kDirectRows<F>) {
        direct_rows<F>(args, panel, n);
      } else {
        chunked_panel<F>(args, panel, n);
      }
    }
  }

  template <Plain P>
  static void matmul_plain(const MatmulArgs& args) noexcept {
    std::int64_t n = args.n_begin;
    // Few rows: four panels side by side keep enough sums in flight. Many: two reuse each
    // broadcast.
    if (args.m <= 4) {
      for (; n + 4 * kPanelRows <= args.n_end; n += 4 * kPanelRows) plain_rows<P, 4>(args, n);
    }
    for (; n + 2 * kPanelRows <= args.n_end; n += 2 * kPanelRows) plain_rows<P, 2>(args, n);
    for (; n < args.n_end; n += kPanelRows) plain_rows<P, 1>(args, n);
  }
};

#include "kernels/body/matmul_table.inl.hpp"

}  // namespace

KernelTable with_avx512_matmul(KernelTable table) noexcept {
  table.find_matmul = &find_in_rows<Avx512>;
  return table;
}

}  // namespace spud::kernels
