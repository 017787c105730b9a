// SPDX-License-Identifier: Apache-2.0
// GGUF files made by hand, right or wrong in any field, for tests and fuzz seeds: every count,
// length, type and offset can be set apart from what follows it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spud::formats {

inline std::string raw_u32(std::uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
inline std::string raw_u64(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
inline std::string raw_string(std::string_view text) {
  return raw_u64(text.size()) + std::string(text);
}
// One metadata entry; `payload` is what follows the type.
inline std::string raw_entry(std::string_view key, std::uint32_t type, std::string_view payload) {
  return raw_string(key) + raw_u32(type) + std::string(payload);
}
inline std::string raw_u32_entry(std::string_view key, std::uint32_t value) {
  return raw_entry(key, 4, raw_u32(value));
}
inline std::string raw_string_entry(std::string_view key, std::string_view value) {
  return raw_entry(key, 8, raw_string(value));
}
inline std::string raw_array_entry(std::string_view key, std::uint32_t element_type,
                                   std::uint64_t count, std::string_view payload) {
  return raw_entry(key, 9, raw_u32(element_type) + raw_u64(count) + std::string(payload));
}

struct RawTensor {
  std::string name;
  std::vector<std::uint64_t> shape = {32};
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  std::optional<std::uint32_t> claimed_dims = {};
};

struct RawGguf {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::vector<std::string> entries = {};
  std::vector<RawTensor> tensors = {};
  std::optional<std::uint64_t> claimed_entries = {};
  std::optional<std::uint64_t> claimed_tensors = {};
  std::uint64_t alignment = 32;
  std::uint64_t data_bytes = 0;

  std::string bytes() const {
    std::string out = magic + raw_u32(version) + raw_u64(claimed_tensors.value_or(tensors.size())) +
                      raw_u64(claimed_entries.value_or(entries.size()));
    for (const std::string& entry : entries) out += entry;
    for (const RawTensor& tensor : tensors) {
      out += raw_string(tensor.name);
      out += raw_u32(tensor.claimed_dims.value_or(static_cast<std::uint32_t>(tensor.shape.size())));
      for (const std::uint64_t extent : tensor.shape) out += raw_u64(extent);
      out += raw_u32(tensor.type) + raw_u64(tensor.offset);
    }
    if (data_bytes > 0) {
      out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
      for (std::uint64_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i * 7 + 1);
    }
    return out;
  }
};

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace spud::formats
