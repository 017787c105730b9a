// SPDX-License-Identifier: Apache-2.0
// Row functions with AVX-512. The last lanes of a row are masked, never a scalar tail, so a value's
// result does not depend on its place. Sums over a row run in one fixed order of lanes.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"

namespace spud::kernels {
namespace {

#include "kernels/body/avx512_math.inl.hpp"

inline __m512 load_lanes(__mmask16 lanes, const float* at) {
  return _mm512_maskz_loadu_ps(lanes, at);
}

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon,
              float* y) noexcept {
  __m512 sums[4];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < n; i += 64) {
    for (int j = 0; j < 4; ++j) {
      const std::int64_t left = n - i - 16 * j;
      const __m512 v = load_lanes(left > 0 ? first_lanes(left) : __mmask16{0}, x + i + 16 * j);
      sums[j] = _mm512_fmadd_ps(v, v, sums[j]);
    }
  }
  const __m512 sum =
      _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
  const float mean = _mm512_reduce_add_ps(sum) / static_cast<float>(n);
  const float root = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + epsilon)));
  const __m512 scale = _mm512_set1_ps(1.0F / root);
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(n - i);
    const __m512 v = _mm512_mul_ps(load_lanes(lanes, x + i), scale);
    _mm512_mask_storeu_ps(y + i, lanes, _mm512_mul_ps(v, load_lanes(lanes, weight + i)));
  }
}

void add(float* x, const float* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(n - i);
    _mm512_mask_storeu_ps(x + i, lanes,
                          _mm512_add_ps(load_lanes(lanes, x + i), load_lanes(lanes, y + i)));
  }
}

void silu_mul(float* gate, const float* up, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(n - i);
    const __m512 g = load_lanes(lanes, gate + i);
    const __m512 silu = times_sigmoid(g, g);
    _mm512_mask_storeu_ps(gate + i, lanes, _mm512_mul_ps(silu, load_lanes(lanes, up + i)));
  }
}

// 0.5 x (1 + tanh u) = x sigmoid(2u), with u = sqrt(2/pi) (x + 0.044715 x^3).
void gelu_tanh_mul(float* gate, const float* up, std::int64_t n) noexcept {
  const __m512 a = _mm512_set1_ps(2.0F * 0.7978845608028654F);
  const __m512 b = _mm512_set1_ps(2.0F * 0.7978845608028654F * 0.044715F);
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(n - i);
    const __m512 x = load_lanes(lanes, gate + i);
    const __m512 u = _mm512_mul_ps(x, _mm512_fmadd_ps(_mm512_mul_ps(x, x), b, a));
    const __m512 gelu = times_sigmoid(x, u);
    _mm512_mask_storeu_ps(gate + i, lanes, _mm512_mul_ps(gelu, load_lanes(lanes, up + i)));
  }
}

// Pairs (2i, 2i + 1): even lanes a cos - b sin, odd lanes b cos + a sin.
void rope_pairs(float* x, std::int64_t rope_dim, const float* cos_sin) {
  for (std::int64_t i = 0; i < rope_dim; i += 16) {
    const __mmask16 lanes = first_lanes(rope_dim - i);
    const __m512 cs = load_lanes(lanes, cos_sin + i);
    const __m512 v = load_lanes(lanes, x + i);
    const __m512 swapped = _mm512_permute_ps(v, 0xB1);
    const __m512 by_sine = _mm512_mul_ps(swapped, _mm512_movehdup_ps(cs));
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmaddsub_ps(v, _mm512_moveldup_ps(cs), by_sine));
  }
}

// Halves (i, i + rope_dim / 2).
void rope_halves(float* x, std::int64_t rope_dim, const float* cos_sin) {
  const std::int64_t half = rope_dim / 2;
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (std::int64_t i = 0; i < half; i += 16) {
    const __mmask16 lanes = first_lanes(half - i);
    const std::int64_t left = 2 * (half - i);
    const __m512 low = load_lanes(first_lanes(left), cos_sin + 2 * i);
    const __m512 high =
        load_lanes(left > 16 ? first_lanes(left - 16) : __mmask16{0}, cos_sin + 2 * i + 16);
    const __m512 cosine = _mm512_permutex2var_ps(low, even, high);
    const __m512 sine = _mm512_permutex2var_ps(low, odd, high);
    const __m512 a = load_lanes(lanes, x + i);
    const __m512 b = load_lanes(lanes, x + half + i);
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmsub_ps(a, cosine, _mm512_mul_ps(b, sine)));
    _mm512_mask_storeu_ps(x + half + i, lanes, _mm512_fmadd_ps(b, cosine, _mm512_mul_ps(a, sine)));
  }
}

void rope(float* x, std::int64_t heads, std::int64_t head_dim, std::int64_t rope_dim,
          const float* cos_sin, bool interleaved) noexcept {
  for (std::int64_t h = 0; h < heads; ++h, x += head_dim) {
    if (interleaved) {
      rope_pairs(x, rope_dim, cos_sin);
    } else {
      rope_halves(x, rope_dim, cos_sin);
    }
  }
}

void f32_to_f16(const float* x, std::int64_t n, std::uint16_t* out) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(n - i);
    const __m256i half =
        _mm512_cvtps_ph(load_lanes(lanes, x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_mask_storeu_epi16(out + i, lanes, half);
  }
}

float max_of(const float* x, std::int64_t n) {
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 max = lowest;
  for (std::int64_t i = 0; i < n; i += 16) {
    max = _mm512_max_ps(_mm512_mask_loadu_ps(lowest, first_lanes(n - i), x + i), max);
  }
  return _mm512_reduce_max_ps(max);
}

// Sums 1024 values at a time in float, these in double: 49,152 terms cost no precision.
float log_sum_exp(const float* x, std::int64_t n) noexcept {
  const float max = max_of(x, n);
  if (!(max > -__builtin_inff())) return max;
  const __m512 shift = _mm512_set1_ps(max);
  __m512d total = _mm512_setzero_pd();
  for (std::int64_t begin = 0; begin < n; begin += 1024) {
    const std::int64_t end = begin + 1024 < n ? begin + 1024 : n;
    __m512 sum = _mm512_setzero_ps();
    for (std::int64_t i = begin; i < end; i += 16) {
      const __mmask16 lanes = first_lanes(end - i);
      const __m512 e = exp_ps(_mm512_sub_ps(load_lanes(lanes, x + i), shift));
      sum = _mm512_mask_add_ps(sum, lanes, sum, e);
    }
    total = _mm512_add_pd(total, _mm512_cvtps_pd(_mm512_castps512_ps256(sum)));
    total = _mm512_add_pd(total, _mm512_cvtps_pd(_mm512_extractf32x8_ps(sum, 1)));
  }
  return max + static_cast<float>(__builtin_log(_mm512_reduce_add_pd(total)));
}

std::int64_t argmax(const float* x, std::int64_t n) noexcept {
  const float max = max_of(x, n);
  const __m512 wanted = _mm512_set1_ps(max);
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(n - i);
    const __mmask16 equal =
        _mm512_mask_cmp_ps_mask(lanes, load_lanes(lanes, x + i), wanted, _CMP_EQ_OQ);
    if (equal != 0) return i + __builtin_ctz(equal);
  }
  return 0;
}

}  // namespace

KernelTable with_avx512_elementwise(KernelTable table) noexcept {
  table.rms_norm = &rms_norm;
  table.add = &add;
  table.silu_mul = &silu_mul;
  table.gelu_tanh_mul = &gelu_tanh_mul;
  table.rope = &rope;
  table.f32_to_f16 = &f32_to_f16;
  table.log_sum_exp = &log_sum_exp;
  table.argmax = &argmax;
  return table;
}

}  // namespace spud::kernels
