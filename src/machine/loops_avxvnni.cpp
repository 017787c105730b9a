// SPDX-License-Identifier: Apache-2.0
// AVX2 with the 256-bit VNNI instructions of CPUs that have no AVX-512.
#include <immintrin.h>

#include "machine/loops.hpp"

namespace spud::machine {
namespace {

constexpr std::size_t kLine = 64;
// Independent chains: latency 4 or 5, two instructions a cycle.
constexpr int kChains = 12;

inline __m256i load(const std::byte* at) noexcept {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
}

inline std::uint64_t add_lanes(__m256i value) noexcept {
  const __m128i half =
      _mm_add_epi64(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(half)) +
         static_cast<std::uint64_t>(_mm_extract_epi64(half, 1));
}

inline std::int32_t add_int32(__m256i value) noexcept {
  return static_cast<std::int32_t>(add_lanes(value));
}

// Two cache lines of each stream in turn.
template <std::size_t kStreams>
std::uint64_t read_streams(const std::byte* data, std::size_t bytes, std::size_t ahead) noexcept {
  const std::size_t share = bytes / kStreams;
  __m256i sum0 = _mm256_setzero_si256();
  __m256i sum1 = _mm256_setzero_si256();
  __m256i sum2 = _mm256_setzero_si256();
  __m256i sum3 = _mm256_setzero_si256();
  for (std::size_t at = 0; at < share; at += 2 * kLine) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * share + at;
      if (ahead != 0) {
        _mm_prefetch(reinterpret_cast<const char*>(line + ahead), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(line + ahead + kLine), _MM_HINT_T0);
      }
      sum0 = _mm256_add_epi64(sum0, load(line));
      sum1 = _mm256_add_epi64(sum1, load(line + 32));
      sum2 = _mm256_add_epi64(sum2, load(line + 64));
      sum3 = _mm256_add_epi64(sum3, load(line + 96));
    }
  }
  return add_lanes(_mm256_add_epi64(_mm256_add_epi64(sum0, sum1), _mm256_add_epi64(sum2, sum3)));
}

std::uint64_t read(const std::byte* data, std::size_t bytes, const ReadPattern& pattern) noexcept {
  switch (pattern.streams) {
    case 1:
      return read_streams<1>(data, bytes, pattern.prefetch_distance);
    case 2:
      return read_streams<2>(data, bytes, pattern.prefetch_distance);
    case 4:
      return read_streams<4>(data, bytes, pattern.prefetch_distance);
    default:
      return read_streams<8>(data, bytes, pattern.prefetch_distance);
  }
}

std::int32_t int_dot(std::int64_t iterations) noexcept {
  __m256i sum[kChains];
  for (auto& chain : sum) chain = _mm256_setzero_si256();
  const __m256i a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(-5);
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (auto& chain : sum) chain = _mm256_dpbusd_avx_epi32(chain, a, b);
  }
  __m256i total = sum[0];
  for (int i = 1; i < kChains; ++i) total = _mm256_add_epi32(total, sum[i]);
  return add_int32(total);
}

float fma(std::int64_t iterations) noexcept {
  __m256 sum[kChains];
  for (auto& chain : sum) chain = _mm256_setzero_ps();
  const __m256 a = _mm256_set1_ps(1.25F);
  const __m256 b = _mm256_set1_ps(0.5F);
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (auto& chain : sum) chain = _mm256_fmadd_ps(chain, b, a);
  }
  __m256 total = sum[0];
  for (int i = 1; i < kChains; ++i) total = _mm256_add_ps(total, sum[i]);
  return _mm256_cvtss_f32(total);
}

}  // namespace

LoopTable avxvnni_loops() noexcept {
  return {.name = "AVX-VNNI",
          .int_operation = "vpdpbusd ymm",
          .read = read,
          .int_dot = int_dot,
          .int_ops_per_iteration = 2.0 * 32 * kChains,
          .fma = fma,
          .fma_ops_per_iteration = 2.0 * 8 * kChains};
}

}  // namespace spud::machine
