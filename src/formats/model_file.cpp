// SPDX-License-Identifier: Apache-2.0
#include "formats/model_file.hpp"

#include <system_error>

#include "formats/gguf.hpp"
#include "io/byte_reader.hpp"
#include "quantize/quantize.hpp"

namespace spud::formats {

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
  return open_gguf(path);
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
