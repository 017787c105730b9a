// SPDX-License-Identifier: Apache-2.0
// The three loops that find a machine's limits: reading, integer dot products, fp32 FMA. One column
// per instruction set; each is the best this CPU can do with it when nothing else is in the way, so
// that a real kernel's share of it means something. They touch no memory but what they read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.hpp"

namespace spud::machine {

// How one pass reads: so many places of the buffer at a time (hardware follows several streams at
// once, and one alone does not always fill the memory channel), asking ahead or not.
struct ReadPattern {
  std::size_t streams = 1;            // 1, 2, 4 or 8
  std::size_t prefetch_distance = 0;  // bytes; 0 = leave it to the hardware
};
// `bytes` is a multiple of this, `data` 64-byte aligned.
inline constexpr std::size_t kReadGrain = std::size_t{8} * 4096;

struct LoopTable {
  const char* name;           // "AVX-512 VNNI"
  const char* int_operation;  // what int_dot repeats: "vpdpbusd zmm"
  // Reads every byte once; the result depends on all of them.
  std::uint64_t (*read)(const std::byte* data, std::size_t bytes,
                        const ReadPattern& pattern) noexcept;
  // A multiplication and an addition count as two operations.
  std::int32_t (*int_dot)(std::int64_t iterations) noexcept;
  double int_ops_per_iteration;
  float (*fma)(std::int64_t iterations) noexcept;
  double fma_ops_per_iteration;
};

// The best of this CPU within `limit`.
LoopTable select_loops(kernels::Isa limit) noexcept;

// Columns by themselves; a CPU without the instructions dies in them.
LoopTable scalar_loops() noexcept;
LoopTable avx2_loops() noexcept;
LoopTable avxvnni_loops() noexcept;
LoopTable avx512_loops() noexcept;

}  // namespace spud::machine
