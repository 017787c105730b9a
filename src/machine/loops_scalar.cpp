// SPDX-License-Identifier: Apache-2.0
// What the base instruction set can do. Written with the compiler's vectors of 16 bytes, which
// every x86-64 and AArch64 has.
#include <cstring>

#include "machine/loops.hpp"

namespace spud::machine {
namespace {

using U64x2 = std::uint64_t __attribute__((vector_size(16)));
using I16x8 = std::int16_t __attribute__((vector_size(16)));
using F32x4 = float __attribute__((vector_size(16)));

constexpr std::size_t kStep = 64;

inline U64x2 load(const std::byte* at) noexcept {
  U64x2 value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One cache line of each stream in turn.
template <std::size_t kStreams>
std::uint64_t read_streams(const std::byte* data, std::size_t bytes, std::size_t ahead) noexcept {
  const std::size_t share = bytes / kStreams;
  U64x2 sum[4] = {};
  for (std::size_t at = 0; at < share; at += kStep) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * share + at;
      if (ahead != 0) __builtin_prefetch(line + ahead);
      for (std::size_t i = 0; i < 4; ++i) sum[i] += load(line + i * 16);
    }
  }
  const U64x2 total = sum[0] + sum[1] + sum[2] + sum[3];
  return total[0] + total[1];
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

constexpr int kChains = 8;

// 16-bit products: what the base set has for integers.
std::int32_t int_dot(std::int64_t iterations) noexcept {
  I16x8 sum[kChains] = {};
  I16x8 a = {1, 2, 3, 4, 5, 6, 7, 8};
  const I16x8 b = {3, 1, 4, 1, 5, 9, 2, 6};
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (auto& chain : sum) {
      __asm__ volatile("" : "+m"(a));  // else the product would leave the loop
      chain += a * b;
    }
  }
  std::int32_t total = 0;
  for (const auto& chain : sum) total += chain[0] + chain[7];
  return total;
}

float fma(std::int64_t iterations) noexcept {
  F32x4 sum[kChains] = {};
  F32x4 a = {1, 2, 3, 4};
  const F32x4 b = {0.5F, 0.25F, 0.125F, 0.0625F};
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (auto& chain : sum) chain = chain * b + a;
  }
  float total = 0;
  for (const auto& chain : sum) total += chain[0] + chain[3];
  return total;
}

}  // namespace

LoopTable scalar_loops() noexcept {
  return {.name = "base",
          .int_operation = "16-bit multiply and add",
          .read = read,
          .int_dot = int_dot,
          .int_ops_per_iteration = 2.0 * 8 * kChains,
          .fma = fma,
          .fma_ops_per_iteration = 2.0 * 4 * kChains};
}

}  // namespace spud::machine
