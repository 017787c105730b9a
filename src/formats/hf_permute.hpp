// SPDX-License-Identifier: Apache-2.0
// The order of rows of llama's query and key matrices. Rotary embedding turns pairs of values;
// Hugging Face pairs row i of a head with row i + half, GGUF keeps the pairs side by side.
// Whole rows move, so it works on the stored bytes of any type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "formats/hf_names.hpp"
#include "formats/model_file.hpp"

namespace spud::formats {

enum class RowOrder : std::uint8_t { kPairs, kHalves };  // what to make: GGUF's or Hugging Face's

// Biases (one dimension) are permuted value by value.
[[nodiscard]] Result<std::vector<std::byte>> permute_rows(const Metadata& metadata,
                                                          const TensorInfo& info,
                                                          std::span<const std::byte> data,
                                                          HfChange change, RowOrder order);

}  // namespace spud::formats
