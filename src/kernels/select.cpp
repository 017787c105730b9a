// SPDX-License-Identifier: Apache-2.0
// Which kernels this CPU gets: a fold over the ISA files.
#include <algorithm>

#include "kernels/isa_files.hpp"
#include "kernels/kernel_table.hpp"

namespace spud::kernels {
namespace {

// The compiler's feature test also asks whether the operating system saves the wide registers.
bool cpu_has_avx2() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

bool cpu_has_avx512() noexcept {
#if defined(__x86_64__)
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

}  // namespace

KernelTable with_avx2(KernelTable table) noexcept {
  table = with_avx2_matmul(table);
  table = with_avx2_prepare(table);
  table = with_avx2_attention(table);
  table = with_avx2_elementwise(table);
  table.isa = Isa::kAvx2;
  return table;
}

KernelTable with_avx512(KernelTable table) noexcept {
  table = with_avx512_matmul(table);
  table = with_avx512_prepare(table);
  table = with_avx512_attention(table);
  table = with_avx512_elementwise(table);
  table.isa = Isa::kAvx512;
  return table;
}

Isa detect_isa() noexcept {
  if (cpu_has_avx512()) return Isa::kAvx512;
  return cpu_has_avx2() ? Isa::kAvx2 : Isa::kScalar;
}

KernelTable select_kernels(Isa limit) noexcept {
  const Isa isa = std::min(limit, detect_isa());
  KernelTable table = scalar_kernels();
  if (isa >= Isa::kAvx2) table = with_avx2(table);
  if (isa >= Isa::kAvx512) table = with_avx512(table);
  return table;
}

const char* to_string(Isa isa) noexcept {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

const char* to_string(KvType type) noexcept { return type == KvType::kF16 ? "f16" : "int8"; }

}  // namespace spud::kernels
