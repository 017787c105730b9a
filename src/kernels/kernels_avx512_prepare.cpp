// SPDX-License-Identifier: Apache-2.0
// Activations to int8 blocks with AVX-512: the scalar definition's arithmetic and its bits.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"
#include "kernels/packed_layout.hpp"

namespace spud::kernels {
namespace {

inline void prepare_block(const float* x, Int8Block& out) {
  const __m512 a = _mm512_loadu_ps(x);
  const __m512 b = _mm512_loadu_ps(x + 16);
  const float largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(a), _mm512_abs_ps(b)));
  const __m512 inverse = _mm512_set1_ps(largest > 0 ? 127.0F / largest : 0.0F);
  const __m512i top = _mm512_set1_epi32(127);
  const __m512i bottom = _mm512_set1_epi32(-127);
  const auto rounded = [&](__m512 v) {  // the default rounding mode: to nearest even
    const __m512i i = _mm512_cvtps_epi32(_mm512_mul_ps(v, inverse));
    return _mm512_max_epi32(_mm512_min_epi32(i, top), bottom);
  };
  const __m512i qa = rounded(a);
  const __m512i qb = rounded(b);
  auto* q = reinterpret_cast<__m128i*>(out.q);
  _mm_store_si128(q, _mm512_cvtepi32_epi8(qa));
  _mm_store_si128(q + 1, _mm512_cvtepi32_epi8(qb));
  const int sums[2] = {_mm512_reduce_add_epi32(qa), _mm512_reduce_add_epi32(qb)};
  out.scale = largest / 127.0F;
  out.scaled_sum = out.scale * static_cast<float>(sums[0] + sums[1]);
  out.offset_sum = -128 * (sums[0] + sums[1]);
  for (int half = 0; half < 2; ++half) {
    out.scaled_sum16[half] = out.scale * static_cast<float>(sums[half]);
    out.offset_sum16[half] = -128 * sums[half];
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
  for (std::int64_t b = 0; b < int8_blocks(k); ++b) {
    const std::int64_t left = k - b * kBlock;
    if (left >= kBlock) {
      prepare_block(x + b * kBlock, blocks[b]);
    } else {
      alignas(64) float padded[kBlock] = {};
      for (std::int64_t i = 0; i < left; ++i) padded[i] = x[b * kBlock + i];
      prepare_block(padded, blocks[b]);
    }
  }
}

}  // namespace

KernelTable with_avx512_prepare(KernelTable table) noexcept {
  table.prepare = &prepare;
  return table;
}

}  // namespace spud::kernels
