// SPDX-License-Identifier: Apache-2.0
// The safetensors format: a JSON header with names, types, shapes and byte ranges, then the bytes.
// Tensors are views into the mapped file. The strict reading of the format is enforced: ranges are
// contiguous, without hole or overlap, and end with the file; no name twice; byte counts match.
// Memory: parsing allocates at most kParseMemoryFactor (gguf.hpp) times the bytes parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "formats/model_file.hpp"

namespace spud::formats {

inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxSafetensorsDims = 8;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;                 // "BF16": also types that are not one of ours
  std::vector<std::uint64_t> shape;  // as stored: the last dimension is contiguous; {} = one value
  std::uint64_t begin = 0;           // from the start of the file
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by position in the file
  std::vector<std::pair<std::string, std::string>> metadata;
};

[[nodiscard]] Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> bytes);

// A TensorInfo with GGUF's order of dimensions; fails for types and ranks we do not have.
[[nodiscard]] Result<TensorInfo> to_tensor_info(const SafetensorsEntry& entry);

// One file as a ModelFile: names as they are, no architecture, metadata "safetensors.<key>".
[[nodiscard]] Result<std::shared_ptr<const ModelFile>> open_safetensors(
    const std::filesystem::path& path);

// Shapes are given in GGUF's order and written reversed. Plain types only.
[[nodiscard]] Result<void> write_safetensors(const std::filesystem::path& path,
                                             std::span<const WriteTensor> tensors);

}  // namespace spud::formats
