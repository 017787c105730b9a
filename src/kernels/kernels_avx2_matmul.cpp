// SPDX-License-Identifier: Apache-2.0
// Products with AVX2: the same packed layout, read in halves of 8 rows (packed_layout.hpp). Without
// VNNI a byte product is vpmaddubsw (unsigned x signed, pairs summed in 16 bits, saturating) and
// vpmaddwd. What fits into 16 bits decides how:
//
//   6 bits or fewer  u <= 63, |a| <= 127: two pairs of 6 bits or four of 5 still fit, so several
//                    groups are summed in 16 bits before they are widened
//   8 bits, tables   u <= 255 would saturate: the sign moves over, |w| x sign(a, w), where
//                    128 * 127 * 2 = 32512 just fits; widened after every group
//
// A chunk of one panel is unpacked to the first-level cache, then multiplied by tiles of up to 4
// rows: both halves at once, since broadcasts of activations are what the loads are spent on. The
// float operations and their order are those of the AVX-512 file.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"
#include "kernels/packed_layout.hpp"
#include "kernels/packing.hpp"

namespace spud::kernels {
namespace {

constexpr int kTileRows = 4;
constexpr int kHalves = 2;                 // vectors of 8 in a panel's 16 rows
constexpr std::int64_t kChunkBlocks = 32;  // 16 kB of bytes

enum class Kind { kSigned, kSixBits, kFiveBits };

constexpr Kind kind_of(Form form) {
  if (form.bits == 8 || form.lut) return Kind::kSigned;
  return form.bits == 6 ? Kind::kSixBits : Kind::kFiveBits;
}

inline __m256i load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }

inline __m256 load_f16(const std::uint8_t* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

template <int kShift>
inline __m256i shift_right(__m256i x) {
  if constexpr (kShift < 0) return _mm256_slli_epi16(x, -kShift);
  return _mm256_srli_epi16(x, kShift);
}

// 16 bytes for every bit of a 32-bit mask that is set.
inline __m256i expand_mask(const std::uint8_t* at, std::uint8_t value) {
  std::int32_t bits = 0;
  __builtin_memcpy(&bits, at, 4);
  const __m256i spread = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                            0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201ULL));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread);
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
  return _mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(value)));
}

// One half (8 rows) of the 8 groups of a block as unsigned bytes; `half` is 0 or 32.
template <Form F>
inline void load_half_block(const std::uint8_t* q, std::int64_t half, __m256i (&w)[8]) {
  const __m256i low = _mm256_set1_epi8(F.bits >= 4 ? 15 : 3);
  if constexpr (F.bits >= 4) {
    for (int i = 0; i < 4; ++i) {
      const __m256i two = load(q + 64 * i + half);
      w[i] = _mm256_and_si256(two, low);
      w[i + 4] = _mm256_and_si256(_mm256_srli_epi16(two, 4), low);
    }
  } else {
    for (int h = 0; h < 2; ++h) {
      const __m256i four = load(q + 64 * h + half);
      w[4 * h] = _mm256_and_si256(four, low);
      w[4 * h + 1] = _mm256_and_si256(_mm256_srli_epi16(four, 2), low);
      w[4 * h + 2] = _mm256_and_si256(_mm256_srli_epi16(four, 4), low);
      w[4 * h + 3] = _mm256_and_si256(_mm256_srli_epi16(four, 6), low);
    }
  }
  if constexpr (F.bits == 6) {
    const __m256i high = _mm256_set1_epi8(0x30);
    for (int h = 0; h < 2; ++h) {
      const __m256i four = load(q + 256 + 64 * h + half);
      __m256i* to = w + 4 * h;
      to[0] = _mm256_or_si256(to[0], _mm256_and_si256(shift_right<-4>(four), high));
      to[1] = _mm256_or_si256(to[1], _mm256_and_si256(shift_right<-2>(four), high));
      to[2] = _mm256_or_si256(to[2], _mm256_and_si256(four, high));
      to[3] = _mm256_or_si256(to[3], _mm256_and_si256(shift_right<2>(four), high));
    }
  }
  if constexpr (F.bits == 5 || F.bits == 3) {
    const std::uint8_t* masks = q + 64 * (F.bits - 1) + half / 8;
    for (int g = 0; g < 8; ++g) {
      w[g] = _mm256_or_si256(w[g], expand_mask(masks + 8 * g, F.bits == 5 ? 16 : 4));
    }
  }
  if constexpr (F.lut) {
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Values)));
    for (int g = 0; g < 8; ++g) w[g] = _mm256_shuffle_epi8(table, w[g]);
  }
}

struct Scales {
  float scale[kPanelRows];
  float min[kPanelRows];
};

// Scale (and minimum) of the 16 rows in sub-block `sub` of `block`.
template <Form F>
inline void load_scales(const std::uint8_t* panel, std::int64_t block, std::int64_t sub,
                        Scales& out) {
  const std::uint8_t* unit = panel + F.scales_at(block);
  constexpr std::int64_t kParts = F.mins ? 2 : 1;
  const std::uint8_t* subs =
      unit + 32 * kParts + (block % kSuperBlocks * F.subs() + sub) * 16 * kParts;
  for (int half = 0; half < 2; ++half) {
    __m256 scale = load_f16(unit + 16 * half);
    __m256 min = _mm256_setzero_ps();
    if constexpr (F.mins) min = load_f16(unit + 32 + 16 * half);
    if constexpr (F.super) {
      const auto eight = [&](std::int64_t offset) {
        return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(subs + offset + 8 * half));
      };
      scale = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight(0))));
      if constexpr (F.mins) {
        min = _mm256_mul_ps(min, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight(16))));
      }
    }
    _mm256_storeu_ps(out.scale + 8 * half, scale);
    _mm256_storeu_ps(out.min + 8 * half, min);
  }
}

// Up to kChunkBlocks blocks of one panel: 512 bytes a block, one or two Scales a block.
struct Chunk {
  const std::uint8_t* w;
  std::int64_t gap;  // after every second block
  const Scales* scales;
  std::int64_t first;  // block
  std::int64_t blocks;
  const std::uint8_t* next;  // the same chunk of the next panel, packed
  std::int64_t next_step;    // bytes a block there
  __m128i shift;             // turns -128 * sum into -offset * sum
};

inline __m256i broadcast4(const std::int8_t* at) {
  std::int32_t four = 0;
  __builtin_memcpy(&four, at, 4);
  return _mm256_set1_epi32(four);
}

// GCC would add in another order, for which it keeps all addends, more than there are registers.
inline void keep_order(__m256i& sum) { __asm__("" : "+x"(sum)); }

// Adds groups [begin, end) of a block to the integer sums of M rows.
template <Kind kKind, int M>
inline void add_groups(const std::uint8_t* w, const Int8Block* const (&x)[M], int begin, int end,
                       __m256i (&sum)[M][kHalves]) {
  const __m256i ones = _mm256_set1_epi16(1);
  constexpr int kRun = kKind == Kind::kSigned ? 1 : kKind == Kind::kSixBits ? 2 : 4;
#pragma GCC unroll 8
  for (int g = begin; g < end; g += kRun) {
    __m256i narrow[M][kHalves];
    for (int i = g; i < g + kRun; ++i) {
      for (int h = 0; h < kHalves; ++h) {
        __m256i weights = load(w + 64 * i + 32 * h);
        __m256i magnitude = weights;
        if constexpr (kKind == Kind::kSigned) {
          weights = _mm256_xor_si256(weights, _mm256_set1_epi8(static_cast<char>(0x80)));
          magnitude = _mm256_abs_epi8(weights);
        }
        for (int r = 0; r < M; ++r) {
          __m256i a = broadcast4(x[r]->q + 4 * i);
          if constexpr (kKind == Kind::kSigned) a = _mm256_sign_epi8(a, weights);
          const __m256i product = _mm256_maddubs_epi16(magnitude, a);
          narrow[r][h] = i == g ? product : _mm256_add_epi16(narrow[r][h], product);
          keep_order(narrow[r][h]);
        }
      }
    }
    for (int r = 0; r < M; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        const __m256i wide = _mm256_madd_epi16(narrow[r][h], ones);
        const bool first = kKind == Kind::kSigned && g == begin;  // starts from 0
        sum[r][h] = first ? wide : _mm256_add_epi32(sum[r][h], wide);
        keep_order(sum[r][h]);
      }
    }
  }
}

inline __m256i lanes_of(const MatmulArgs& args, std::int64_t n) {
  const std::int64_t rows = args.n_total - n;
  const int count = static_cast<int>(rows > 8 ? 8 : rows < 0 ? 0 : rows);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// M rows against a chunk. Partial sums between chunks live in `out`.
template <Kind kKind, bool kSub16, bool kMins, int M>
void tile(const MatmulArgs& args, const Chunk& chunk, std::int64_t first_row, std::int64_t n) {
  constexpr int kSubs = kSub16 ? 2 : 1;
  const __m256i lanes[kHalves] = {lanes_of(args, n), lanes_of(args, n + 8)};
  const std::int64_t stride = int8_stride(args.k);
  const auto* rows =
      static_cast<const Int8Block*>(args.activations) + first_row * stride + chunk.first;
  float* out = args.out + first_row * args.out_stride + n;
  __m256 acc[M][kHalves];
  for (int r = 0; r < M; ++r) {
    for (int h = 0; h < kHalves; ++h) {
      acc[r][h] = chunk.first == 0
                      ? _mm256_setzero_ps()
                      : _mm256_maskload_ps(out + r * args.out_stride + 8 * h, lanes[h]);
    }
  }
  for (std::int64_t b = 0; b < chunk.blocks; ++b) {
    if (first_row == 0) {
      const std::uint8_t* next = chunk.next + b * chunk.next_step;
      for (std::int64_t i = 0; i < chunk.next_step; i += 64) _mm_prefetch(next + i, _MM_HINT_T1);
    }
    const Int8Block* x[M];
    for (int r = 0; r < M; ++r) x[r] = rows + r * stride + b;
    for (int s = 0; s < kSubs; ++s) {
      const Scales& scales = chunk.scales[b * kSubs + s];
      __m256i sum[M][kHalves];
      for (int r = 0; r < M; ++r) {
        __m256i start = _mm256_setzero_si256();
        // The signed kind has no offset left; types with minima never had one.
        if constexpr (!kMins && kKind != Kind::kSigned) {
          const std::int32_t offset = kSub16 ? x[r]->offset_sum16[s] : x[r]->offset_sum;
          start = _mm256_sra_epi32(_mm256_set1_epi32(offset), chunk.shift);
        }
        for (int h = 0; h < kHalves; ++h) sum[r][h] = start;
      }
      add_groups<kKind, M>(chunk.w + 512 * b + chunk.gap * (b / 2), x, s * 8 / kSubs,
                           (s + 1) * 8 / kSubs, sum);
      for (int h = 0; h < kHalves; ++h) {
        const __m256 scale = _mm256_loadu_ps(scales.scale + 8 * h);
        for (int r = 0; r < M; ++r) {
          const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x[r]->scale));
          acc[r][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r][h]), both, acc[r][h]);
          if constexpr (kMins) {
            const float scaled = kSub16 ? x[r]->scaled_sum16[s] : x[r]->scaled_sum;
            acc[r][h] = _mm256_fmadd_ps(_mm256_loadu_ps(scales.min + 8 * h), _mm256_set1_ps(scaled),
                                        acc[r][h]);
          }
        }
      }
    }
  }
  for (int r = 0; r < M; ++r) {
    for (int h = 0; h < kHalves; ++h) {
      _mm256_maskstore_ps(out + r * args.out_stride + 8 * h, lanes[h], acc[r][h]);
    }
  }
}

template <Kind kKind, bool kSub16, bool kMins, int M>
void last_tile(const MatmulArgs& args, const Chunk& chunk, std::int64_t row, std::int64_t n) {
  if constexpr (M > 0) {
    if (args.m - row == M) return tile<kKind, kSub16, kMins, M>(args, chunk, row, n);
    last_tile<kKind, kSub16, kMins, M - 1>(args, chunk, row, n);
  }
}

template <Kind kKind, bool kSub16, bool kMins>
void chunk_rows(const MatmulArgs& args, const Chunk& chunk, std::int64_t n) {
  std::int64_t row = 0;
  for (; row + kTileRows <= args.m; row += kTileRows) {
    tile<kKind, kSub16, kMins, kTileRows>(args, chunk, row, n);
  }
  last_tile<kKind, kSub16, kMins, kTileRows - 1>(args, chunk, row, n);
}

template <Form F>
void multiply_panel(const MatmulArgs& args, const std::uint8_t* panel, std::int64_t n) {
  const std::int64_t blocks = args.k / kBlock;
  alignas(32) std::uint8_t bytes[F.bits == 8 ? 64 : kChunkBlocks * 512];
  alignas(32) Scales scales[kChunkBlocks * F.subs()];
  for (std::int64_t first = 0; first < blocks; first += kChunkBlocks) {
    const std::int64_t count = blocks - first < kChunkBlocks ? blocks - first : kChunkBlocks;
    for (std::int64_t b = 0; b < count; ++b) {
      for (int s = 0; s < F.subs(); ++s) {
        load_scales<F>(panel, first + b, s, scales[b * F.subs() + s]);
      }
      if constexpr (F.bits != 8) {
        for (std::int64_t half = 0; half < 64; half += 32) {
          __m256i w[8];
          load_half_block<F>(panel + F.quants_at(first + b), half, w);
          for (int g = 0; g < 8; ++g) {
            _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + 512 * b + 64 * g + half), w[g]);
          }
        }
      }
    }
    const Chunk chunk{F.bits == 8 ? panel + F.quants_at(first) : bytes,
                      F.bits == 8 ? F.scale_bytes() : 0,
                      scales,
                      first,
                      count,
                      panel + F.panel_bytes(blocks) + F.scales_at(first),
                      F.unit_bytes() / F.unit_blocks(),
                      _mm_cvtsi32_si128(7 - log2_of(F.offset))};
    chunk_rows<kind_of(F), F.sub == 16, F.mins>(args, chunk, n);
  }
}

// ---- Plain numbers: float activations, one fused multiply-add per column in order of columns.

template <Plain P>
inline __m256 load_plain(const std::uint8_t* at) {
  if constexpr (P == Plain::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  if constexpr (P == Plain::kF16) return load_f16(at);
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// M rows x kPanels panels of 2 vectors.
template <Plain P, int M, int kPanels>
void plain_tile(const MatmulArgs& args, std::int64_t first_row, std::int64_t n) {
  constexpr std::int64_t kStep = kPanelRows * plain_bytes(P);
  constexpr int kVecs = 2 * kPanels;
  const std::int64_t panel_bytes = args.k * kStep;
  const auto* panel = static_cast<const std::uint8_t*>(args.packed) + n / kPanelRows * panel_bytes;
  const std::int64_t x_stride = f32_row_bytes(args.k) / 4;
  const float* x = static_cast<const float*>(args.activations) + first_row * x_stride;
  __m256 acc[M][kVecs];
  for (int r = 0; r < M; ++r) {
    for (int v = 0; v < kVecs; ++v) acc[r][v] = _mm256_setzero_ps();
  }
  for (std::int64_t i = 0; i < args.k; ++i) {
    __m256 w[kVecs];
    for (int v = 0; v < kVecs; ++v) {
      w[v] = load_plain<P>(panel + v / 2 * panel_bytes + i * kStep + v % 2 * (kStep / 2));
    }
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      const __m256 a = _mm256_set1_ps(x[r * x_stride + i]);
      for (int v = 0; v < kVecs; ++v) acc[r][v] = _mm256_fmadd_ps(a, w[v], acc[r][v]);
    }
  }
  for (int r = 0; r < M; ++r) {
    float* out = args.out + (first_row + r) * args.out_stride + n;
    for (int v = 0; v < kVecs; ++v) {
      _mm256_maskstore_ps(out + 8 * v, lanes_of(args, n + 8 * v), acc[r][v]);
    }
  }
}

template <Plain P, int M, int kPanels>
void plain_last_rows(const MatmulArgs& args, std::int64_t row, std::int64_t n) {
  if constexpr (M > 0) {
    if (args.m - row == M) return plain_tile<P, M, kPanels>(args, row, n);
    plain_last_rows<P, M - 1, kPanels>(args, row, n);
  }
}

template <Plain P, int kPanels>
void plain_rows(const MatmulArgs& args, std::int64_t n) {
  constexpr int kRows = 6 / kPanels;
  std::int64_t row = 0;
  for (; row + kRows <= args.m; row += kRows) plain_tile<P, kRows, kPanels>(args, row, n);
  plain_last_rows<P, kRows - 1, kPanels>(args, row, n);
}

struct Avx2 {
  template <Form F>
  static void matmul(const MatmulArgs& args) noexcept {
    const std::int64_t panel_bytes = F.panel_bytes(args.k / kBlock);
    const auto* panel =
        static_cast<const std::uint8_t*>(args.packed) + args.n_begin / kPanelRows * panel_bytes;
    for (std::int64_t n = args.n_begin; n < args.n_end; n += kPanelRows, panel += panel_bytes) {
      multiply_panel<F>(args, panel, n);
    }
  }

  template <Plain P>
  static void matmul_plain(const MatmulArgs& args) noexcept {
    std::int64_t n = args.n_begin;
    if (args.m <= 3) {  // several panels side by side keep enough sums in flight
      for (; n + 2 * kPanelRows <= args.n_end; n += 2 * kPanelRows) plain_rows<P, 2>(args, n);
    }
    for (; n < args.n_end; n += kPanelRows) plain_rows<P, 1>(args, n);
  }
};

#include "kernels/body/matmul_table.inl.hpp"

}  // namespace

KernelTable with_avx2_matmul(KernelTable table) noexcept {
  table.find_matmul = &find_in_rows<Avx2>;
  return table;
}

}  // namespace spud::kernels
