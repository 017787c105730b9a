// SPDX-License-Identifier: Apache-2.0
#include "formats/model_summary.hpp"

#include <algorithm>

#include "base/checked_math.hpp"

namespace spud::formats {
namespace {

using Number = std::optional<std::uint64_t>;

Number multiply(Number a, Number b) { return a && b ? checked_mul(*a, *b) : std::nullopt; }

// Keys and values of one token in half floats over all layers.
Number kv_bytes(const ModelSummary& summary, Number key_length, Number value_length) {
  if (!key_length && summary.width && summary.heads && *summary.heads != 0) {
    key_length = *summary.width / *summary.heads;
  }
  if (!value_length) value_length = key_length;
  if (!key_length || !value_length) return std::nullopt;
  const Number per_head = checked_add(*key_length, *value_length);
  return multiply(multiply(multiply(per_head, 2), summary.kv_heads), summary.layers);
}

}  // namespace

ModelSummary summarize(const ModelFile& file) {
  ModelSummary summary;
  for (const TensorInfo& info : file.tensors()) {
    auto found = std::ranges::find(summary.types, info.dtype, &TypeUsage::dtype);
    if (found == summary.types.end()) {
      summary.types.push_back({.dtype = info.dtype});
      found = summary.types.end() - 1;
    }
    found->tensors += 1;
    found->values += info.num_values();
    found->bytes += info.size_bytes;
    summary.parameters += info.num_values();
    summary.tensor_bytes += info.size_bytes;
  }
  std::ranges::sort(summary.types, std::ranges::greater{}, &TypeUsage::bytes);

  const auto number = [&file](std::string_view key) {
    return file.metadata().find_uint(file.architecture() + "." + std::string(key));
  };
  summary.layers = number("block_count");
  summary.width = number("embedding_length");
  summary.heads = number("attention.head_count");
  summary.kv_heads = number("attention.head_count_kv");
  if (!summary.kv_heads) summary.kv_heads = summary.heads;
  summary.feed_forward = number("feed_forward_length");
  summary.context_length = number("context_length");
  summary.sliding_window = number("attention.sliding_window");
  summary.kv_bytes_per_token =
      kv_bytes(summary, number("attention.key_length"), number("attention.value_length"));
  return summary;
}

}  // namespace spud::formats
