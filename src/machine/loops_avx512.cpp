// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI.
#include <immintrin.h>

#include "machine/loops.hpp"

namespace spud::machine {
namespace {

constexpr std::size_t kLine = 64;
// Independent chains: latency 4 or 5, two instructions a cycle.
constexpr int kChains = 12;

// Unsigned: the compiler's own reductions add signed lanes, which may overflow.
template <typename Lane>
Lane add_lanes(__m512i value) noexcept {
  alignas(64) Lane lanes[64 / sizeof(Lane)];
  _mm512_store_si512(lanes, value);
  Lane sum = 0;
  for (const Lane lane : lanes) sum += lane;
  return sum;
}

inline __m512i load(const std::byte* at) noexcept { return _mm512_load_si512(at); }

// Two cache lines of each stream in turn.
template <std::size_t kStreams>
std::uint64_t read_streams(const std::byte* data, std::size_t bytes, std::size_t ahead) noexcept {
  const std::size_t share = bytes / kStreams;
  __m512i sum0 = _mm512_setzero_si512();
  __m512i sum1 = _mm512_setzero_si512();
  for (std::size_t at = 0; at < share; at += 2 * kLine) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * share + at;
      if (ahead != 0) {
        _mm_prefetch(reinterpret_cast<const char*>(line + ahead), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(line + ahead + kLine), _MM_HINT_T0);
      }
      sum0 = _mm512_add_epi64(sum0, load(line));
      sum1 = _mm512_add_epi64(sum1, load(line + kLine));
    }
  }
  return add_lanes<std::uint64_t>(_mm512_add_epi64(sum0, sum1));
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
  __m512i sum[kChains];
  for (auto& chain : sum) chain = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(-5);
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (auto& chain : sum) chain = _mm512_dpbusd_epi32(chain, a, b);
  }
  __m512i total = sum[0];
  for (int i = 1; i < kChains; ++i) total = _mm512_add_epi32(total, sum[i]);
  return static_cast<std::int32_t>(add_lanes<std::uint32_t>(total));
}

float fma(std::int64_t iterations) noexcept {
  __m512 sum[kChains];
  for (auto& chain : sum) chain = _mm512_setzero_ps();
  const __m512 a = _mm512_set1_ps(1.25F);
  const __m512 b = _mm512_set1_ps(0.5F);
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (auto& chain : sum) chain = _mm512_fmadd_ps(chain, b, a);
  }
  __m512 total = sum[0];
  for (int i = 1; i < kChains; ++i) total = _mm512_add_ps(total, sum[i]);
  return _mm512_cvtss_f32(total);
}

}  // namespace

LoopTable avx512_loops() noexcept {
  return {.name = "AVX-512 VNNI",
          .int_operation = "vpdpbusd zmm",
          .read = read,
          .int_dot = int_dot,
          .int_ops_per_iteration = 2.0 * 64 * kChains,
          .fma = fma,
          .fma_ops_per_iteration = 2.0 * 16 * kChains};
}

}  // namespace spud::machine
