// SPDX-License-Identifier: Apache-2.0
#include "formats/model_file.hpp"

#include <system_error>

#include "formats/gguf.hpp"
#include "formats/hf_folder.hpp"
#include "formats/safetensors.hpp"
#include "io/byte_reader.hpp"
#include "io/mapped_file.hpp"
#include "quantize/quantize.hpp"

namespace spud::formats {

namespace {

// By content: a GGUF file says so in its first four bytes, a safetensors header begins at byte 8.
Result<bool> looks_like_safetensors(const std::filesystem::path& path) {
  SPUD_TRY(const auto file, io::MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) return false;
  if (bytes.size() > 8 && bytes[8] == std::byte{'{'}) return true;
  return fail(ErrorCode::kInvalidArgument,
              "'{}' is neither a GGUF nor a safetensors file (nor a Hugging Face folder)",
              path.string());
}

}  // namespace

std::uint64_t TensorInfo::rows() const noexcept {
  if (shape.empty()) return 0;
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

Result<std::shared_ptr<const ModelFile>> ModelFile::open(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return fail(ErrorCode::kNotFound, "no file or folder '{}'", path.string());
  }
  if (std::filesystem::is_directory(path, error)) return open_hf_folder(path);
  SPUD_TRY(const bool safetensors, looks_like_safetensors(path));
  return safetensors ? open_safetensors(path) : open_gguf(path);
}

std::optional<std::size_t> ModelFile::find_tensor_index(std::string_view name) const noexcept {
  // A few hundred tensors, asked for once each: a scan is quick enough.
  const auto& all = tensors();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return i;
  }
  return std::nullopt;
}

const TensorInfo* ModelFile::find_tensor(std::string_view name) const noexcept {
  const auto index = find_tensor_index(name);
  return index ? &tensors()[*index] : nullptr;
}

const std::string& ModelFile::architecture() const noexcept {
  static const std::string kNone;
  const std::string* found = metadata().find_string("general.architecture");
  return found != nullptr ? *found : kNone;
}

Result<std::vector<float>> read_floats(const ModelFile& file, std::string_view name) {
  const auto index = file.find_tensor_index(name);
  if (!index) return fail(ErrorCode::kNotFound, "no tensor '{}'", io::printable(name));
  const TensorInfo& info = file.tensors()[*index];
  std::vector<float> values(info.num_values());
  auto read = quantize::dequantize(info.dtype, file.tensor_bytes(*index), values);
  if (!read) {
    return fail_within(fmt::format("tensor '{}'", io::printable(name)), std::move(read).error());
  }
  return values;
}

}  // namespace spud::formats
