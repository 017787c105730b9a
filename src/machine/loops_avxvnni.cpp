// SPDX-License-Identifier: Apache-2.0
// AVX2 with the 256-bit VNNI instructions of CPUs that have no AVX-512: only the integer products
// differ.
#include <immintrin.h>

#include "machine/loops.hpp"

namespace spud::machine {
namespace {

// Independent chains: latency 4 or 5, two instructions a cycle.
constexpr int kChains = 12;

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
  return _mm_cvtsi128_si32(_mm256_castsi256_si128(total));
}

}  // namespace

LoopTable avxvnni_loops() noexcept {
  LoopTable table = avx2_loops();
  table.name = "AVX-VNNI";
  table.int_operation = "vpdpbusd ymm";
  table.int_dot = int_dot;
  table.int_ops_per_iteration = 2.0 * 32 * kChains;
  return table;
}

}  // namespace spud::machine
