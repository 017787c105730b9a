// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quantize/blocks.hpp"

namespace spud::quantize {
namespace {

using internal::Block;
using internal::kBlock;
using tensor::DType;

Result<void> check_finite(std::span<const float> values) {
  // One multiply-add per value in the usual case: x * 0 is 0 for every finite x, NaN otherwise.
  float probe = 0;
  for (const float value : values) probe += value * 0.0F;
  if (probe == 0) return {};
  const auto bad = std::ranges::find_if_not(values, [](float v) { return std::isfinite(v); });
  return fail(ErrorCode::kInvalidArgument, "value {} at index {} is not finite", *bad,
              bad - values.begin());
}

Result<void> check_importance(std::span<const float> importance, std::size_t columns) {
  if (importance.empty()) return {};
  if (importance.size() != columns) {
    return fail(ErrorCode::kInvalidArgument, "{} importance values for rows of {}",
                importance.size(), columns);
  }
  for (std::size_t i = 0; i < columns; ++i) {
    if (!std::isfinite(importance[i]) || importance[i] < 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "importance {} at index {} must be finite and not negative", importance[i], i);
    }
  }
  return {};
}

std::unexpected<Error> too_large(DType type, float value, std::size_t index) {
  return fail(ErrorCode::kInvalidArgument, "value {} at index {} is too large for {}", value, index,
              tensor::to_string(type));
}

template <typename Convert>
Result<void> store_16_bits(DType type, std::span<const float> values, std::span<std::byte> out,
                           float limit, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::fabs(values[i]) > limit) return too_large(type, values[i], i);
    const std::uint16_t bits = convert(values[i]);
    std::memcpy(&out[2 * i], &bits, sizeof(bits));
  }
  return {};
}

// The weights of one block, scaled so that the largest is 1 (sums then neither overflow nor
// vanish). Without importance, or where all of it is zero, every value counts the same.
std::array<float, kBlock> block_weights(std::span<const float> importance, std::size_t start) {
  std::array<float, kBlock> weights;
  weights.fill(1.0F);
  if (importance.empty()) return weights;
  const auto part = importance.subspan(start, kBlock);
  const float largest = *std::ranges::max_element(part);
  if (largest <= 0) return weights;
  for (std::size_t i = 0; i < kBlock; ++i) weights[i] = part[i] / largest;
  return weights;
}

Result<void> store_blocks(DType type, std::span<const float> values, const QuantizeOptions& options,
                          std::span<std::byte> out) {
  const std::size_t block_bytes = tensor::traits(type).block_bytes;
  const bool search = options.search_scale || !options.importance.empty();
  for (std::size_t i = 0, at = 0; i < values.size(); i += kBlock, at += block_bytes) {
    const Block plain = internal::reference_block(type, &values[i]);
    if (!internal::fits_half(plain)) {
      const auto part = values.subspan(i, kBlock);
      const auto largest =
          std::ranges::max_element(part, {}, [](float value) { return std::fabs(value); });
      return too_large(type, *largest, i + static_cast<std::size_t>(largest - part.begin()));
    }
    const Block best = search ? internal::search_block(type, &values[i],
                                                       block_weights(options.importance, i).data())
                              : plain;
    internal::store_block(type, best, &out[at]);
  }
  return {};
}

}  // namespace

bool can_quantize(DType type) noexcept {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kIQ4_NL:
      return true;
    default:
      return false;
  }
}

Result<void> quantize_row(DType type, std::span<const float> values, const QuantizeOptions& options,
                          std::span<std::byte> out) {
  if (!can_quantize(type)) {
    return fail(ErrorCode::kUnimplemented, "values cannot be written as type number {}",
                static_cast<std::uint32_t>(type));
  }
  if (tensor::bytes_for(type, values.size()) != out.size()) {
    return fail(ErrorCode::kInvalidArgument, "{} values of type {} do not fill {} bytes",
                values.size(), tensor::to_string(type), out.size());
  }
  SPUD_TRY(check_finite(values));
  SPUD_TRY(check_importance(options.importance, values.size()));
  if (values.empty()) return {};
  switch (type) {
    case DType::kF32:
      std::memcpy(out.data(), values.data(), out.size());
      return {};
    case DType::kF16:
      return store_16_bits(type, values, out, kMaxHalf, float_to_half);
    case DType::kBF16:
      // Above this, rounding would give infinity.
      return store_16_bits(type, values, out, std::bit_cast<float>(0x7F7F7FFFU), float_to_bfloat16);
    default:
      return store_blocks(type, values, options, out);
  }
}

}  // namespace spud::quantize
