// SPDX-License-Identifier: Apache-2.0
// Activations to int8 blocks with AVX2: the scalar definition's arithmetic and its bits.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"
#include "kernels/packed_layout.hpp"

namespace spud::kernels {
namespace {

inline float reduce_max(__m256 x) {
  __m128 max = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  max = _mm_max_ps(max, _mm_movehl_ps(max, max));
  return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
}

inline int reduce_add(__m256i x) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
}

inline void prepare_block(const float* x, Int8Block& out) {
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 v[4];
  __m256 top = _mm256_setzero_ps();
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    top = _mm256_max_ps(top, _mm256_and_ps(v[i], no_sign));
  }
  const float largest = reduce_max(top);
  const __m256 inverse = _mm256_set1_ps(largest > 0 ? 127.0F / largest : 0.0F);
  __m256i q[4];
  for (int i = 0; i < 4; ++i) {  // the default rounding mode: to nearest even
    q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
    q[i] =
        _mm256_max_epi32(_mm256_min_epi32(q[i], _mm256_set1_epi32(127)), _mm256_set1_epi32(-127));
  }
  const __m256i words_a = _mm256_packs_epi32(q[0], q[1]);
  const __m256i words_b = _mm256_packs_epi32(q[2], q[3]);
  const __m256i bytes = _mm256_packs_epi16(words_a, words_b);  // in 4-byte pieces, lanes apart
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.q), _mm256_permutevar8x32_epi32(bytes, order));
  const int sums[2] = {reduce_add(_mm256_add_epi32(q[0], q[1])),
                       reduce_add(_mm256_add_epi32(q[2], q[3]))};
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
    for (std::int64_t i = 0; i < k; ++i) to[i] = x[i];
    for (std::int64_t i = k; i < f32_row_bytes(k) / 4; ++i) to[i] = 0;
    return;
  }
  auto* blocks = static_cast<Int8Block*>(out);
  for (std::int64_t b = 0; b < int8_blocks(k); ++b) {
    const std::int64_t left = k - b * kBlock;
    if (left >= kBlock) {
      prepare_block(x + b * kBlock, blocks[b]);
    } else {
      float padded[kBlock] = {};
      for (std::int64_t i = 0; i < left; ++i) padded[i] = x[b * kBlock + i];
      prepare_block(padded, blocks[b]);
    }
  }
}

}  // namespace

KernelTable with_avx2_prepare(KernelTable table) noexcept {
  table.prepare = &prepare;
  return table;
}

}  // namespace spud::kernels
