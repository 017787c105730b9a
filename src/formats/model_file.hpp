// SPDX-License-Identifier: Apache-2.0
// One view of a model on disk, whatever its format: named tensors and named metadata, with GGUF's
// names as the common tongue (a Hugging Face folder is translated on opening: config.json to
// `{arch}.*`, tokenizer.json to `tokenizer.ggml.*`, tensor names and the llama Q/K row permutation
// too). Files are hostile until parsed: every count and offset is checked against the bytes there
// are before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "tensor/dtype.hpp"

namespace spud::formats {

struct MetadataValue;
// An array keeps its GGUF element type even when empty. Nested arrays are refused.
struct MetadataArray {
  // One of the vectors below, by GGUF element type.
  std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
               std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
               std::vector<float>, std::vector<bool>, std::vector<std::string>,
               std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>
      values;
};
struct MetadataValue {
  std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
               float, bool, std::string, MetadataArray, std::uint64_t, std::int64_t, double>
      value;  // index = GGUF's value type number
};

// Ordered as in the file; keys are unique. Thread-compatible.
class Metadata {
 public:
  struct Entry {
    std::string key;
    MetadataValue value;
  };
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const MetadataValue* find(std::string_view key) const noexcept;
  // Replaces in place, or appends.
  void set(std::string_view key, MetadataValue value);
  bool erase(std::string_view key);

  // Any integer type that fits (u32 or u64 alike); nothing when absent, wrong type or out of range.
  std::optional<std::uint64_t> find_uint(std::string_view key) const noexcept;
  std::optional<std::int64_t> find_int(std::string_view key) const noexcept;
  std::optional<double> find_number(std::string_view key) const noexcept;  // ints and floats
  std::optional<bool> find_bool(std::string_view key) const noexcept;
  const std::string* find_string(std::string_view key) const noexcept;
  const std::vector<std::string>* find_strings(std::string_view key) const noexcept;
  const std::vector<float>* find_floats(std::string_view key) const noexcept;
  const std::vector<std::int32_t>* find_ints(std::string_view key) const noexcept;

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

struct TensorInfo {
  std::string name;  // GGUF name: "blk.0.attn_q.weight"
  tensor::DType dtype{};
  std::vector<std::uint64_t> shape;  // GGUF order: shape[0] is the row length (columns), 1-4 dims
  std::uint64_t size_bytes = 0;

  std::uint64_t columns() const noexcept { return shape.empty() ? 0 : shape[0]; }
  std::uint64_t rows() const noexcept;  // product of the other dims
  std::uint64_t num_values() const noexcept { return columns() * rows(); }
};

// Immutable once open; thread-safe for reading.
class ModelFile {
 public:
  virtual ~ModelFile() = default;
  // GGUF file (also the first part of a split one), a .safetensors file or a Hugging Face folder.
  [[nodiscard]] static Result<std::shared_ptr<const ModelFile>> open(
      const std::filesystem::path& path);

  virtual std::string_view format() const noexcept = 0;  // "gguf", "safetensors"
  virtual const Metadata& metadata() const noexcept = 0;
  virtual const std::vector<TensorInfo>& tensors() const noexcept = 0;
  // The stored bytes of tensors()[index], valid while this object lives.
  virtual std::span<const std::byte> tensor_bytes(std::size_t index) const noexcept = 0;
  virtual std::uint64_t file_bytes() const noexcept = 0;  // all parts together

  const TensorInfo* find_tensor(std::string_view name) const noexcept;
  std::optional<std::size_t> find_tensor_index(std::string_view name) const noexcept;
  const std::string& architecture() const noexcept;  // "general.architecture", "" when absent
};

// The tensor as floats. [[nodiscard]] errors: no such tensor, type without dequantisation.
[[nodiscard]] Result<std::vector<float>> read_floats(const ModelFile& file, std::string_view name);

// What to write. The data callback is asked once per tensor, in order, and must fill exactly
// `size_bytes` (buffers come zero-filled). Written to a temporary file beside `path`, synced and
// renamed: a crash leaves the old file or the new one.
struct WriteTensor {
  TensorInfo info;
  std::function<Result<void>(std::span<std::byte> out)> fill;
};
[[nodiscard]] Result<void> write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                                      std::span<const WriteTensor> tensors);

// SHA-256 (hex) over names, types, shapes and bytes of all tensors, in name order: the identity a
// certificate is bound to. The same for two files with the same tensors in another order.
[[nodiscard]] std::string tensor_digest(const ModelFile& file);
// SHA-256 (hex) over all `tokenizer.ggml.*` metadata, and over the chat template(s).
[[nodiscard]] std::string tokenizer_digest(const Metadata& metadata);
[[nodiscard]] std::string chat_template_digest(const Metadata& metadata);

}  // namespace spud::formats
