// SPDX-License-Identifier: Apache-2.0
// What each ISA file exports: one function that takes a table and replaces what it does better.
// An ISA is split in files by subject so that each stays short; select.cpp folds them. An ISA file
// includes <immintrin.h>, <cstddef>, <cstdint> and our headers of plain data only, keeps everything
// else in an anonymous namespace and is compiled with the ISA's flags; check_isa_symbols.cmake
// proves with nm that it defines one external symbol.
#pragma once

#include "kernels/kernel_table.hpp"

namespace spud::kernels {

KernelTable with_avx2_matmul(KernelTable table) noexcept;
KernelTable with_avx2_prepare(KernelTable table) noexcept;
KernelTable with_avx2_attention(KernelTable table) noexcept;
KernelTable with_avx2_elementwise(KernelTable table) noexcept;

KernelTable with_avx512_matmul(KernelTable table) noexcept;
KernelTable with_avx512_prepare(KernelTable table) noexcept;
KernelTable with_avx512_attention(KernelTable table) noexcept;
KernelTable with_avx512_elementwise(KernelTable table) noexcept;

}  // namespace spud::kernels
