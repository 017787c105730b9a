// SPDX-License-Identifier: Apache-2.0
#include "quality/block_errors.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "io/byte_reader.hpp"
#include "quantize/quantize.hpp"

namespace spud::quality::internal {
namespace {

constexpr std::size_t kBlock = 32;
constexpr std::uint64_t kChunkValues = 1U << 16;
// A scale this small vanishes in 16 bits; a block of zeros is then right.
constexpr float kSmallestKept = 1e-5F;

std::string place(const StoredTensor& tensor) {
  return fmt::format("tensor '{}'", io::printable(tensor.info.name));
}

Result<void> read_chunk(const StoredTensor& tensor, std::uint64_t first, std::span<float> out) {
  const auto offset = tensor::bytes_for(tensor.info.dtype, first);
  const auto size = tensor::bytes_for(tensor.info.dtype, out.size());
  if (!offset || !size || *offset > tensor.bytes.size() || *size > tensor.bytes.size() - *offset) {
    return fail(ErrorCode::kDataLoss, "{}: {} bytes are too few for its shape", place(tensor),
                tensor.bytes.size());
  }
  auto read = quantize::dequantize(tensor.info.dtype, tensor.bytes.subspan(*offset, *size), out);
  if (!read) return fail_within(place(tensor), std::move(read).error());
  return {};
}

bool is_zeroed(std::span<const float> original, std::span<const float> candidate) {
  float largest = 0;
  for (const float value : original) largest = std::max(largest, std::abs(value));
  return largest > kSmallestKept &&
         std::ranges::all_of(candidate, [](float value) { return value == 0; });
}

void add_block(std::span<const float> a, std::span<const float> b, std::uint64_t first,
               bool quantised, BlockErrors& errors) {
  double shift = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]);
    const double y = static_cast<double>(b[i]);
    if (!std::isfinite(y)) {
      if (errors.not_finite++ == 0) errors.first_not_finite = first + i;
      continue;
    }
    errors.squared_error += (y - x) * (y - x);
    errors.squared_original += x * x;
    errors.squared_candidate += y * y;
    errors.product += x * y;
    shift += y - x;
  }
  errors.squared_shift += shift * shift / static_cast<double>(a.size());
  if (quantised && is_zeroed(a, b) && errors.zeroed_blocks++ == 0) errors.first_zeroed = first;
}

}  // namespace

double BlockErrors::relative_rms() const noexcept {
  if (squared_original == 0) return squared_error == 0 ? 0 : 1;
  return std::sqrt(squared_error / squared_original);
}

double BlockErrors::cosine() const noexcept {
  const double sizes = std::sqrt(squared_original * squared_candidate);
  return sizes == 0 ? (squared_error == 0 ? 1 : 0) : product / sizes;
}

double BlockErrors::offset_share() const noexcept {
  return squared_error == 0 ? 0 : squared_shift / squared_error;
}

Result<void> check_readable(const StoredTensor& tensor) {
  if (quantize::can_dequantize(tensor.info.dtype)) return {};
  return fail(ErrorCode::kUnimplemented, "{} is {}, which can not be read as numbers",
              place(tensor), tensor::to_string(tensor.info.dtype));
}

Result<BlockErrors> compare_blocks(const StoredTensor& original, const StoredTensor& candidate) {
  SPUD_TRY(check_readable(candidate));
  BlockErrors errors;
  const bool quantised = tensor::traits(candidate.info.dtype).quantised;
  const std::uint64_t count = original.info.num_values();
  std::vector<float> a(std::min(count, kChunkValues));
  std::vector<float> b(a.size());
  for (std::uint64_t first = 0; first < count; first += kChunkValues) {
    const auto size = static_cast<std::size_t>(std::min(kChunkValues, count - first));
    SPUD_TRY(read_chunk(original, first, std::span(a).first(size)));
    SPUD_TRY(read_chunk(candidate, first, std::span(b).first(size)));
    for (std::size_t i = 0; i < size; i += kBlock) {
      const std::size_t n = std::min(kBlock, size - i);
      add_block(std::span(a).subspan(i, n), std::span(b).subspan(i, n), first + i, quantised,
                errors);
    }
  }
  return errors;
}

}  // namespace spud::quality::internal
