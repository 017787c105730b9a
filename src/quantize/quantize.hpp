// SPDX-License-Identifier: Apache-2.0
// The scalar definition of every block type: floats to blocks and back. Rounding of the plain
// (unweighted) path is that of GGUF's reference, so that a file of ours equals a file of its tools.
// Not for the hot path: the engine multiplies blocks directly (kernels/).
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "tensor/dtype.hpp"

namespace spud::quantize {

// Reads `out.size()` values. `blocks.size()` must be bytes_for(type, out.size()) (checked).
// Fails with kUnimplemented for a type without dequantisation (integers).
[[nodiscard]] Result<void> dequantize(tensor::DType type, std::span<const std::byte> blocks,
                                      std::span<float> out);

struct QuantizeOptions {
  // Importance of each column (mean squared activation), length = the row's length; empty = none.
  // With importance, or with `search_scale`, scales are searched to minimise the weighted squared
  // error instead of taken from the extreme value. Zeros and an all-zero vector are legal.
  std::span<const float> importance;
  bool search_scale = false;
};

// Writes one row (`values.size()` a multiple of the block) as blocks. Fails when a value is NaN or
// infinite, or (F16) beyond 65504: the message names the index and the value.
// For F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL; others: kUnimplemented.
[[nodiscard]] Result<void> quantize_row(tensor::DType type, std::span<const float> values,
                                        const QuantizeOptions& options, std::span<std::byte> out);

bool can_quantize(tensor::DType type) noexcept;
bool can_dequantize(tensor::DType type) noexcept;

}  // namespace spud::quantize
