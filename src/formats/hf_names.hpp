// SPDX-License-Identifier: Apache-2.0
// The names of tensors in Hugging Face folders and in GGUF, one table for both directions, and what
// happens to the values on the way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spud::formats {

enum class HfChange : std::uint8_t {
  kNone,
  kPermuteQueries,  // rows of each query head: halves <-> neighbouring pairs
  kPermuteKeys,     // the same for key heads
  kAddOne,          // gemma norms: GGUF stores 1 + weight
};

struct HfName {
  std::string name;
  HfChange change = HfChange::kNone;
};

// `architecture` is GGUF's. Nothing for a name that has no counterpart.
std::optional<HfName> hf_to_gguf_name(std::string_view architecture, std::string_view name);
std::optional<HfName> gguf_to_hf_name(std::string_view architecture, std::string_view name);

// Tensors that other programs store and nobody needs (rotary tables).
bool is_ignored_hf_tensor(std::string_view name) noexcept;

}  // namespace spud::formats
