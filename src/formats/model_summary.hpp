// SPDX-License-Identifier: Apache-2.0
// The figures about a model file that a person asks for first: how many parameters, in which types,
// how large the KV cache gets. Computed from metadata and shapes; reads no weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_file.hpp"

namespace spud::formats {

struct TypeUsage {
  tensor::DType dtype{};
  std::uint64_t tensors = 0;
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;
};

struct ModelSummary {
  std::uint64_t parameters = 0;
  std::uint64_t tensor_bytes = 0;
  std::vector<TypeUsage> types;  // most bytes first
  // Absent where the metadata does not say.
  std::optional<std::uint64_t> layers;
  std::optional<std::uint64_t> width;
  std::optional<std::uint64_t> heads;
  std::optional<std::uint64_t> kv_heads;
  std::optional<std::uint64_t> feed_forward;
  std::optional<std::uint64_t> context_length;  // trained
  std::optional<std::uint64_t> sliding_window;
  std::optional<std::uint64_t> kv_bytes_per_token;  // 16-bit keys and values, all layers

  double bits_per_weight() const noexcept {
    return parameters == 0
               ? 0
               : 8.0 * static_cast<double>(tensor_bytes) / static_cast<double>(parameters);
  }
};

ModelSummary summarize(const ModelFile& file);

}  // namespace spud::formats
