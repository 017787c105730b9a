// SPDX-License-Identifier: Apache-2.0
// Attention with AVX2: the shared body over its vector.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/isa_files.hpp"

namespace spud::kernels {
namespace {

template <typename Pages>
constexpr int kRows = Pages::kType == KvType::kF16 ? 3 : 4;

// clang-format off: the body is written against what stands above it
#include "kernels/body/vec_avx2.inl.hpp"
#include "kernels/body/math.inl.hpp"
#include "kernels/body/attention_state.inl.hpp"
#include "kernels/body/attention.inl.hpp"
#include "kernels/body/attention_f16.inl.hpp"
#include "kernels/body/kv_int8.inl.hpp"
#include "kernels/body/attention_int8.inl.hpp"
// clang-format on

}  // namespace

KernelTable with_avx2_attention(KernelTable table) noexcept { return with_attention(table); }

}  // namespace spud::kernels
