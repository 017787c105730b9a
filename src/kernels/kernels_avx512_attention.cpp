// SPDX-License-Identifier: Apache-2.0
// Attention with AVX-512: a block of up to 12 query rows (positions x heads of the group) meets the
// pages one after the other, each page as two small products around a softmax:
//
//   S[rows, 32]  = Q[rows, d] . K^T[d, 32]      K is stored transposed: 32 positions are 2
//   registers m, l, O      = online softmax               one reduction per row and page O[rows, d]
//   += P[rows, 32] . V[32, d]
//
// A page is converted from F16 once for all rows of the block. Every row's arithmetic is its own:
// positions it does not see have P = 0 and leave its bits alone, so how queries are split into
// blocks and calls changes nothing. Positions beyond the last row's are never read: they may hold
// anything.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"

namespace spud::kernels {
namespace {

#include "kernels/body/avx512_math.inl.hpp"

constexpr int kRows = 12;  // 24 accumulators of 2 registers' width
constexpr std::int64_t kMaxHeadDim = 256;

inline __m512 load_f16(const std::uint16_t* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

// The rows of one block.
struct Block {
  const float* q[kRows];
  std::int64_t position[kRows];
  std::int64_t first[kRows];  // the first position that the row sees
  float max[kRows];
  float sum[kRows];
  alignas(64) float p[kRows][kPageTokens];
  alignas(64) float out[kRows][kMaxHeadDim];
};

// p[r][t] = q[r] . k[t], all 32 positions: what lies beyond the written ones is masked later.
template <int R>
void scores(const std::uint16_t* keys, std::int64_t head_dim, Block& block) {
  __m512 acc[R][2];
  for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm512_setzero_ps();
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const __m512 k0 = load_f16(keys + d * kPageTokens);
    const __m512 k1 = load_f16(keys + d * kPageTokens + 16);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 q = _mm512_set1_ps(block.q[r][d]);
      acc[r][0] = _mm512_fmadd_ps(q, k0, acc[r][0]);
      acc[r][1] = _mm512_fmadd_ps(q, k1, acc[r][1]);
    }
  }
  for (int r = 0; r < R; ++r) {
    _mm512_store_ps(block.p[r], acc[r][0]);
    _mm512_store_ps(block.p[r] + 16, acc[r][1]);
  }
}

// Bits [begin, end) of a page's 32 positions.
inline std::uint32_t position_bits(std::int64_t begin, std::int64_t end) {
  const auto below = [](std::int64_t n) { return n <= 0 ? 0U : n >= 32 ? ~0U : (1U << n) - 1U; };
  return below(end) & ~below(begin);
}

inline __m512 capped(__m512 score, float softcap) {
  if (softcap <= 0) return score;
  // cap * tanh(s / cap) = cap * (1 - 2 / (e^(2s/cap) + 1))
  const __m512 e = exp_ps(_mm512_mul_ps(score, _mm512_set1_ps(2.0F / softcap)));
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 quotient = _mm512_div_ps(_mm512_set1_ps(2.0F), _mm512_add_ps(e, one));
  return _mm512_mul_ps(_mm512_set1_ps(softcap), _mm512_sub_ps(one, quotient));
}

// Scores to probabilities relative to the running maximum; returns what the old sums shrink by.
float soften(const AttentionArgs& args, std::int64_t page_start, int r, Block& block) {
  const std::uint32_t seen =
      position_bits(block.first[r] - page_start, block.position[r] + 1 - page_start);
  float* p = block.p[r];
  if (seen == 0) {  // this page is another row's business
    _mm512_store_ps(p, _mm512_setzero_ps());
    _mm512_store_ps(p + 16, _mm512_setzero_ps());
    return 1.0F;
  }
  const auto low = static_cast<__mmask16>(seen);
  const auto high = static_cast<__mmask16>(seen >> 16);
  const __m512 scale = _mm512_set1_ps(args.scale);
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 s0 = capped(_mm512_mul_ps(_mm512_load_ps(p), scale), args.softcap);
  __m512 s1 = capped(_mm512_mul_ps(_mm512_load_ps(p + 16), scale), args.softcap);
  s0 = _mm512_mask_mov_ps(lowest, low, s0);
  s1 = _mm512_mask_mov_ps(lowest, high, s1);
  const float page_max = _mm512_reduce_max_ps(_mm512_max_ps(s0, s1));
  const float max = page_max > block.max[r] ? page_max : block.max[r];
  const __m512 shift = _mm512_set1_ps(max);
  const __m512 p0 = _mm512_maskz_mov_ps(low, exp_ps(_mm512_sub_ps(s0, shift)));
  const __m512 p1 = _mm512_maskz_mov_ps(high, exp_ps(_mm512_sub_ps(s1, shift)));
  _mm512_store_ps(p, p0);
  _mm512_store_ps(p + 16, p1);
  const float shrink =
      _mm_cvtss_f32(_mm512_castps512_ps128(exp_ps(_mm512_set1_ps(block.max[r] - max))));
  block.max[r] = max;
  block.sum[r] = block.sum[r] * shrink + _mm512_reduce_add_ps(_mm512_add_ps(p0, p1));
  return shrink;
}

// out[r] = out[r] * shrink[r] + p[r] . V over positions [begin, end) of the page.
template <int R, int kParts>
void add_values(const std::uint16_t* values, std::int64_t head_dim, std::int64_t d,
                std::int64_t begin, std::int64_t end, const float* shrink, Block& block) {
  __m512 acc[R][kParts];
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < kParts; ++j) {
      acc[r][j] =
          _mm512_mul_ps(_mm512_load_ps(block.out[r] + d + 16 * j), _mm512_set1_ps(shrink[r]));
    }
  }
  for (std::int64_t t = begin; t < end; ++t) {
    __m512 v[kParts];
    for (int j = 0; j < kParts; ++j) v[j] = load_f16(values + t * head_dim + d + 16 * j);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 p = _mm512_set1_ps(block.p[r][t]);
      for (int j = 0; j < kParts; ++j) acc[r][j] = _mm512_fmadd_ps(p, v[j], acc[r][j]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < kParts; ++j) _mm512_store_ps(block.out[r] + d + 16 * j, acc[r][j]);
  }
}

template <int R>
void attend_page(const AttentionArgs& args, std::int64_t page, Block& block) {
  const std::int64_t start = page * kPageTokens;
  const std::uint16_t* keys = args.pages[page];
  const std::uint16_t* values = keys + args.head_dim * kPageTokens;
  scores<R>(keys, args.head_dim, block);
  float shrink[R];
  for (int r = 0; r < R; ++r) shrink[r] = soften(args, start, r, block);
  // Rows are in order of position: the first sees the earliest, the last the latest.
  const std::int64_t first = block.first[0] - start;
  const std::int64_t last = block.position[R - 1] + 1 - start;
  const std::int64_t begin = first > 0 ? first : 0;
  const std::int64_t end = last < kPageTokens ? last : kPageTokens;
  std::int64_t d = 0;
  for (; d + 32 <= args.head_dim; d += 32) {
    add_values<R, 2>(values, args.head_dim, d, begin, end, shrink, block);
  }
  if (d < args.head_dim) add_values<R, 1>(values, args.head_dim, d, begin, end, shrink, block);
}

// Rows [row, row + R) of the call, numbered position by position, head by head.
template <int R>
void attend_rows(const AttentionArgs& args, std::int64_t row) {
  Block block;
  for (int r = 0; r < R; ++r) {
    const std::int64_t i = (row + r) / args.group;
    const std::int64_t position = args.first_position + i;
    const std::int64_t first = args.window > 0 ? position - args.window + 1 : 0;
    block.q[r] = args.q + i * args.q_stride + (row + r) % args.group * args.head_dim;
    block.position[r] = position;
    block.first[r] = first > 0 ? first : 0;
    block.max[r] = -__builtin_inff();
    block.sum[r] = 0;
    for (std::int64_t d = 0; d < args.head_dim; d += 16) {
      _mm512_store_ps(block.out[r] + d, _mm512_setzero_ps());
    }
  }
  for (std::int64_t page = block.first[0] / kPageTokens;
       page <= block.position[R - 1] / kPageTokens; ++page) {
    attend_page<R>(args, page, block);
  }
  for (int r = 0; r < R; ++r) {
    const std::int64_t i = (row + r) / args.group;
    float* out = args.out + i * args.out_stride + (row + r) % args.group * args.head_dim;
    const __m512 inverse = _mm512_set1_ps(1.0F / block.sum[r]);
    for (std::int64_t d = 0; d < args.head_dim; d += 16) {
      // Adding 0 turns a -0, which a page of zeros could have turned already, into 0.
      const __m512 value = _mm512_mul_ps(_mm512_load_ps(block.out[r] + d), inverse);
      _mm512_storeu_ps(out + d, _mm512_add_ps(value, _mm512_setzero_ps()));
    }
  }
}

template <int R>
void attend_last_rows(const AttentionArgs& args, std::int64_t row, std::int64_t rows) {
  if constexpr (R > 0) {
    if (rows == R) return attend_rows<R>(args, row);
    attend_last_rows<R - 1>(args, row, rows);
  }
}

void attention(const AttentionArgs& args) noexcept {
  const std::int64_t rows = args.num_queries * args.group;
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) attend_rows<kRows>(args, row);
  attend_last_rows<kRows - 1>(args, row, rows - row);
}

void store_kv(const float* key, const float* value, std::int64_t head_dim, std::int64_t slot,
              std::uint16_t* block) noexcept {
  constexpr int kRounding = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  std::uint16_t* values = block + head_dim * kPageTokens + slot * head_dim;
  for (std::int64_t d = 0; d < head_dim; d += 16) {
    alignas(32) std::uint16_t keys[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(keys),
                       _mm512_cvtps_ph(_mm512_loadu_ps(key + d), kRounding));
    for (int j = 0; j < 16; ++j) block[(d + j) * kPageTokens + slot] = keys[j];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values + d),
                        _mm512_cvtps_ph(_mm512_loadu_ps(value + d), kRounding));
  }
}

}  // namespace

KernelTable with_avx512_attention(KernelTable table) noexcept {
  table.attention = &attention;
  table.store_kv = &store_kv;
  return table;
}

}  // namespace spud::kernels
