// SPDX-License-Identifier: Apache-2.0
// GGUF itself: the parser over bytes and the file made of one or more parts. Most code wants
// ModelFile (model_file.hpp); this header is for it, for tests and for the fuzz targets.
// Reads versions 2 and 3, little endian. Memory: parsing allocates at most kParseMemoryFactor times
// the bytes parsed; tensor data is never copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/model_file.hpp"

namespace spud::formats {

// Limits on what a file may ask for. Real files stay far below.
inline constexpr std::uint64_t kMaxKeyBytes = 65535;
inline constexpr std::uint64_t kMaxStringBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxTensorNameBytes = 63;
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMaxParts = 1000;
// The worst case is a file of nothing but the smallest keys (14 bytes each).
inline constexpr std::size_t kParseMemoryFactor = 24;

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = kDefaultAlignment;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
  std::vector<std::uint64_t> offsets;  // of each tensor's bytes, from the start of the file
  std::uint64_t metadata_end = 0;      // first byte after the key-value section
  std::uint64_t data_end = 0;          // first byte after the last tensor
};

// Everything but the tensor data, checked: every tensor lies inside `bytes`, in order, no overlap.
[[nodiscard]] Result<GgufHeader> parse_gguf(std::span<const std::byte> bytes);

// Opens one file, or all parts of a split one when given its first part.
[[nodiscard]] Result<std::shared_ptr<const ModelFile>> open_gguf(const std::filesystem::path& path);

// The name of one part of a split file: prefix-00002-of-00005.gguf. `number` counts from 1.
std::string gguf_part_name(std::string_view prefix, std::uint64_t number, std::uint64_t parts);

// One metadata value, a key-value pair, as GGUF stores them (also what digests are made over).
void append_gguf_value(std::string& out, const MetadataValue& value);
void append_gguf_entry(std::string& out, const Metadata::Entry& entry);
// The inverse of append_gguf_value, for exactly these bytes.
[[nodiscard]] Result<MetadataValue> parse_gguf_value(std::span<const std::byte> bytes);

}  // namespace spud::formats
