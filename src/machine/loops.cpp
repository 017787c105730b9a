// SPDX-License-Identifier: Apache-2.0
#include "machine/loops.hpp"

#include <algorithm>

namespace spud::machine {
namespace {

// GCC 12 does not know AVX-VNNI in __builtin_cpu_supports: CPUID leaf 7, subleaf 1, EAX bit 4. The
// operating system saves the registers it needs if it does so for AVX2.
bool cpu_has_avxvnni() noexcept {
#if defined(__x86_64__)
  std::uint32_t eax = 7;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 1;
  std::uint32_t edx = 0;
  __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  return (eax >> 4 & 1U) != 0;
#else
  return false;
#endif
}

}  // namespace

LoopTable select_loops(kernels::Isa limit) noexcept {
  const kernels::Isa isa = std::min(limit, kernels::detect_isa());
  if (isa >= kernels::Isa::kAvx512) return avx512_loops();
  if (isa < kernels::Isa::kAvx2) return scalar_loops();
  return cpu_has_avxvnni() ? avxvnni_loops() : avx2_loops();
}

}  // namespace spud::machine
