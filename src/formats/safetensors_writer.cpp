// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/checked_math.hpp"
#include "formats/safetensors.hpp"
#include "formats/write_tensors.hpp"
#include "io/atomic_file.hpp"
#include "io/byte_reader.hpp"

namespace spud::formats {
namespace {

namespace json = boost::json;

Result<std::string> make_header(std::span<const WriteTensor> tensors) {
  json::object header;
  header["__metadata__"] = json::object{{"format", "pt"}};  // what other readers look for
  std::uint64_t offset = 0;
  for (const WriteTensor& tensor : tensors) {
    const TensorInfo& info = tensor.info;
    const tensor::DTypeTraits* traits = tensor::find_traits(info.dtype);
    if (traits == nullptr || traits->quantised) {
      return fail(ErrorCode::kInvalidArgument, "tensor '{}': safetensors has no block types",
                  io::printable(info.name));
    }
    if (tensor::bytes_for(info.dtype, info.num_values()) != info.size_bytes) {
      return fail(ErrorCode::kInvalidArgument, "tensor '{}': {} bytes do not match its shape",
                  io::printable(info.name), info.size_bytes);
    }
    const auto end = checked_add(offset, info.size_bytes);
    if (!end) return fail(ErrorCode::kInvalidArgument, "the sizes of the tensors overflow");
    json::object entry{{"dtype", json::string_view(traits->name.data(), traits->name.size())},
                       {"shape", json::array(info.shape.rbegin(), info.shape.rend())},
                       {"data_offsets", json::array{offset, *end}}};
    if (!header.emplace(info.name, std::move(entry)).second) {
      return fail(ErrorCode::kInvalidArgument, "two tensors are called '{}'",
                  io::printable(info.name));
    }
    offset = *end;
  }
  std::string text = json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  return text;
}

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const WriteTensor> tensors) {
  SPUD_TRY(const auto header, make_header(tensors));
  SPUD_TRY(auto file, io::AtomicFile::create(path));
  const std::uint64_t length = header.size();
  SPUD_TRY(file.write(std::as_bytes(std::span(&length, 1))));
  SPUD_TRY(file.write(header));
  SPUD_TRY(write_tensors(file, tensors, 1));
  return file.commit();
}

}  // namespace spud::formats
