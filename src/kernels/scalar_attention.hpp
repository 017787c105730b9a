// SPDX-License-Identifier: Apache-2.0
// The definition of storing and attending for each type of keys and values.
#pragma once

#include "kernels/kernel_table.hpp"

namespace spud::kernels::scalar {

KvKernels kv_kernels(KvType type) noexcept;

}  // namespace spud::kernels::scalar
