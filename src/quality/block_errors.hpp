// SPDX-License-Identifier: Apache-2.0
// How far one tensor's values are from another's, block by block, with a few rows in memory at a
// time. A block is what one scale covers (32 values); statistics per block show faults that an
// average over the tensor hides: a zeroed scale, a wrong zero point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "formats/model_file.hpp"

namespace spud::quality::internal {

struct StoredTensor {
  const formats::TensorInfo& info;
  std::span<const std::byte> bytes;
};

// Above this share of squared error that is one shift per block, the zero point is wrong. Rounding
// errors of 32 independent values have a share of 1/32; the most seen in properly rounded tensors
// of SmolLM2, whose values lie on a four-bit grid themselves, is 0.23; a zero point that is one
// step off gives more than 0.9.
inline constexpr double kMaxOffsetShare = 0.50;

struct BlockErrors {
  double squared_error = 0;
  double squared_original = 0;
  double squared_candidate = 0;
  double product = 0;
  double squared_shift = 0;  // sum over blocks of 32 * (mean error)^2
  std::uint64_t not_finite = 0;
  std::uint64_t first_not_finite = 0;
  std::uint64_t zeroed_blocks = 0;  // of quantised types
  std::uint64_t first_zeroed = 0;

  double relative_rms() const noexcept;
  double cosine() const noexcept;
  double offset_share() const noexcept;
};

Result<void> check_readable(const StoredTensor& tensor);
// Same shape. An error when `candidate` can not be dequantised.
Result<BlockErrors> compare_blocks(const StoredTensor& original, const StoredTensor& candidate);

}  // namespace spud::quality::internal
