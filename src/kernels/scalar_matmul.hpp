// SPDX-License-Identifier: Apache-2.0
// The scalar products and activation preparation: the definition the ISA files are tested against.
#pragma once

#include "kernels/kernel_table.hpp"

namespace spud::kernels::scalar {

std::size_t activation_bytes(ActivationKind kind, std::int64_t k) noexcept;
void prepare(ActivationKind kind, const float* x, std::int64_t k, void* out) noexcept;
const MatmulKernels* find_matmul(tensor::DType type) noexcept;

}  // namespace spud::kernels::scalar
