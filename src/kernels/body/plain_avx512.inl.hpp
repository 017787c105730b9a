// SPDX-License-Identifier: Apache-2.0
// Products with weights of plain numbers for AVX-512: float activations, one fused multiply-add per
// column in order of columns. Include inside the anonymous namespace of kernels_avx512_matmul.cpp,
// after load_f16 and lanes_of.

template <Plain P>
inline __m512 load_plain(const std::uint8_t* at) {
  if constexpr (P == Plain::kF32) return _mm512_loadu_ps(at);
  if constexpr (P == Plain::kF16) return load_f16(at);
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// M rows x kPanels panels. Sums of one output are a chain; the tile has enough of them in flight.
template <Plain P, int M, int kPanels>
void plain_tile(const MatmulArgs& args, std::int64_t first_row, std::int64_t n) {
  constexpr std::int64_t kStep = kPanelRows * plain_bytes(P);
  const std::int64_t panel_bytes = args.k * kStep;
  const auto* panel = static_cast<const std::uint8_t*>(args.packed) + n / kPanelRows * panel_bytes;
  const std::int64_t x_stride = f32_row_bytes(args.k) / 4;
  const float* x = static_cast<const float*>(args.activations) + first_row * x_stride;
  __m512 acc[M][kPanels];
  for (int r = 0; r < M; ++r) {
    for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_setzero_ps();
  }
  for (std::int64_t i = 0; i < args.k; ++i) {
    __m512 w[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      w[p] = load_plain<P>(panel + p * panel_bytes + i * kStep);
    }
#pragma GCC unroll 16
    for (int r = 0; r < M; ++r) {
      const __m512 a = _mm512_set1_ps(x[r * x_stride + i]);
      for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_fmadd_ps(a, w[p], acc[r][p]);
    }
  }
  for (int r = 0; r < M; ++r) {
    float* out = args.out + (first_row + r) * args.out_stride + n;
    for (int p = 0; p < kPanels; ++p) {
      _mm512_mask_storeu_ps(out + p * kPanelRows, lanes_of(args, n + p * kPanelRows), acc[r][p]);
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
  constexpr int kRows = 24 / (kPanels + kPanels % 2);
  std::int64_t row = 0;
  for (; row + kRows <= args.m; row += kRows) plain_tile<P, kRows, kPanels>(args, row, n);
  plain_last_rows<P, kRows - 1, kPanels>(args, row, n);
}
