// SPDX-License-Identifier: Apache-2.0
// Activations to int8 blocks with AVX-512: the scalar definition's arithmetic and its bits.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"
#include "kernels/packed_layout.hpp"

namespace spud::kernels {
namespace {

constexpr std::int64_t kTogether = 4;  // blocks

// The largest magnitude of each of four blocks, in lanes 0 .. 3 of every quarter.
inline __m512 largest_of(const __m512 (&low)[kTogether], const __m512 (&high)[kTogether]) {
  __m512 top[kTogether];
  for (int b = 0; b < kTogether; ++b) {
    top[b] = _mm512_max_ps(_mm512_abs_ps(low[b]), _mm512_abs_ps(high[b]));
  }
  const __m512 first =
      _mm512_max_ps(_mm512_unpacklo_ps(top[0], top[1]), _mm512_unpackhi_ps(top[0], top[1]));
  const __m512 second =
      _mm512_max_ps(_mm512_unpacklo_ps(top[2], top[3]), _mm512_unpackhi_ps(top[2], top[3]));
  const __m512d a = _mm512_castps_pd(first);
  const __m512d b = _mm512_castps_pd(second);
  __m512 all = _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  all = _mm512_max_ps(all, _mm512_shuffle_f32x4(all, all, 0x4E));
  return _mm512_max_ps(all, _mm512_shuffle_f32x4(all, all, 0xB1));
}

// The 64 bytes of two blocks: x * inverse, rounded to nearest even, within +-127.
inline __m512i bytes_of(__m512 low0, __m512 high0, __m512 inverse0, __m512 low1, __m512 high1,
                        __m512 inverse1) {
  const auto rounded = [](__m512 x, __m512 by) { return _mm512_cvtps_epi32(_mm512_mul_ps(x, by)); };
  // Packing takes four values of each of its sources in turn.
  const __m512i first = _mm512_packs_epi32(rounded(low0, inverse0), rounded(high0, inverse0));
  const __m512i second = _mm512_packs_epi32(rounded(low1, inverse1), rounded(high1, inverse1));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(first, second));
  return _mm512_max_epi8(bytes, _mm512_set1_epi8(-127));
}

// What stands behind the bytes of two blocks (Int8Block): the scale, the sums of all and of the
// halves times the scale or times -128.
inline __m512i tails_of(__m512i bytes, __m512 scales) {
  __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), bytes);
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));  // by half
  const __m512i totals = _mm512_add_epi32(sums, _mm512_shuffle_i32x4(sums, sums, 0xB1));
  // Lanes of sums are 0 .. 15, of totals 16 .. 31; a block's halves are lanes 0, 4 and 8, 12.
  const __m512i order = _mm512_setr_epi32(16, 16, 16, 0, 4, 0, 4, 16, 24, 24, 24, 8, 12, 8, 12, 24);
  const __m512i wanted = _mm512_permutex2var_epi32(sums, order, totals);
  constexpr __mmask16 kScale = 0x0101;
  constexpr __mmask16 kFloats = 0x1A1A;
  const __m512 floats = _mm512_mul_ps(_mm512_cvtepi32_ps(wanted), scales);
  __m512i tail = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(wanted, 7));
  tail = _mm512_mask_mov_epi32(tail, kFloats, _mm512_castps_si512(floats));
  return _mm512_mask_mov_epi32(tail, kScale, _mm512_castps_si512(scales));
}

inline void store_block(Int8Block& out, __m256i bytes, __m256i tail) {
  auto* to = reinterpret_cast<__m256i*>(&out);
  _mm256_store_si256(to, bytes);
  _mm256_store_si256(to + 1, tail);
}

// The first `count` of four blocks; x has the values of all.
inline void prepare_blocks(const float* x, std::int64_t count, Int8Block* out) {
  __m512 low[kTogether];
  __m512 high[kTogether];
  for (int b = 0; b < kTogether; ++b) {
    low[b] = _mm512_loadu_ps(x + kBlock * b);
    high[b] = _mm512_loadu_ps(x + kBlock * b + 16);
  }
  const __m512 largest = largest_of(low, high);
  const __m512 scale = _mm512_div_ps(largest, _mm512_set1_ps(127.0F));
  const __mmask16 some = _mm512_cmp_ps_mask(largest, _mm512_setzero_ps(), _CMP_GT_OQ);
  const __m512 inverse = _mm512_maskz_div_ps(some, _mm512_set1_ps(127.0F), largest);
  const auto one = [](__m512 of, int b) { return _mm512_permutexvar_ps(_mm512_set1_epi32(b), of); };
  for (int b = 0; b < kTogether && b < count; b += 2) {
    const __m512i bytes =
        bytes_of(low[b], high[b], one(inverse, b), low[b + 1], high[b + 1], one(inverse, b + 1));
    const __m512i tails =
        tails_of(bytes, _mm512_mask_mov_ps(one(scale, b), 0xFF00, one(scale, b + 1)));
    store_block(out[b], _mm512_castsi512_si256(bytes), _mm512_castsi512_si256(tails));
    if (b + 1 >= count) return;
    store_block(out[b + 1], _mm512_extracti64x4_epi64(bytes, 1),
                _mm512_extracti64x4_epi64(tails, 1));
  }
}

void prepare(ActivationKind kind, const float* x, std::int64_t k, void* out) noexcept {
  if (kind == ActivationKind::kF32) {
    auto* to = static_cast<float*>(out);
    const std::int64_t padded = f32_row_bytes(k) / 4;
    for (std::int64_t i = 0; i < padded; i += 16) {
      const std::int64_t left = k - i;
      const auto lanes = static_cast<__mmask16>(left >= 16 ? 0xFFFF : (1 << left) - 1);
      _mm512_storeu_ps(to + i, _mm512_maskz_loadu_ps(lanes, x + i));
    }
    return;
  }
  auto* blocks = static_cast<Int8Block*>(out);
  constexpr std::int64_t kValues = kTogether * kBlock;
  for (std::int64_t i = 0; i < k; i += kValues, blocks += kTogether) {
    const std::int64_t left = k - i;
    if (left >= kValues) {
      prepare_blocks(x + i, kTogether, blocks);
    } else {
      alignas(64) float padded[kValues] = {};
      __builtin_memcpy(padded, x + i, static_cast<std::size_t>(left) * sizeof(float));
      prepare_blocks(padded, int8_blocks(left), blocks);
    }
  }
}

}  // namespace

KernelTable with_avx512_prepare(KernelTable table) noexcept {
  table.prepare = &prepare;
  return table;
}

}  // namespace spud::kernels
