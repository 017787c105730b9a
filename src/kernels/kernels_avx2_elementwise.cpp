// SPDX-License-Identifier: Apache-2.0
// Row functions with AVX2: the shared body over its vector.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"

namespace spud::kernels {
namespace {

// clang-format off: the body is written against what stands above it
#include "kernels/body/vec_avx2.inl.hpp"
#include "kernels/body/math.inl.hpp"
#include "kernels/body/elementwise.inl.hpp"
// clang-format on

}  // namespace

KernelTable with_avx2_elementwise(KernelTable table) noexcept { return with_elementwise(table); }

}  // namespace spud::kernels
