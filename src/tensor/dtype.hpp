// SPDX-License-Identifier: Apache-2.0
// The element types of tensors in model files, with the numbers and block layouts of GGUF (ggml).
// A quantised type stores blocks of 32 or 256 consecutive values of one row. No maths here: values
// are made and read in quantize/ and kernels/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spud::tensor {

// The values are GGUF's type numbers.
enum class DType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kBF16 = 30,
};

struct DTypeTraits {
  std::string_view name;     // "Q4_0", as GGUF tools print it
  std::size_t block_values;  // values per block; 1 for plain types
  std::size_t block_bytes;   // bytes per block
  bool quantised;
  // Bits per value, for tables: 4.5 for Q4_0.
  constexpr double bits_per_value() const {
    return 8.0 * static_cast<double>(block_bytes) / static_cast<double>(block_values);
  }
};

// The largest block any type has: buffers for one block may be this long.
inline constexpr std::size_t kMaxBlockValues = 256;

// Null for a number that is not one of DType's.
const DTypeTraits* find_traits(DType type) noexcept;
// For a type already known to be valid; aborts otherwise.
const DTypeTraits& traits(DType type) noexcept;
std::optional<DType> find_dtype(std::string_view name) noexcept;
inline std::string_view to_string(DType type) noexcept { return traits(type).name; }

// Bytes of `values` consecutive values; nothing when `values` is not a whole number of blocks or
// the product would wrap.
std::optional<std::uint64_t> bytes_for(DType type, std::uint64_t values) noexcept;

}  // namespace spud::tensor
