// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/checked_math.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_types.hpp"
#include "io/byte_reader.hpp"

namespace spud::formats {
namespace {

using io::ByteReader;
using io::printable;

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kMaxDims = 4;
// The fewest bytes that one of each can take: what a count is checked against.
constexpr std::size_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr std::size_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr std::size_t kMinStringBytes = 8;

template <typename T>
std::vector<T> read_numbers(ByteReader& reader, std::uint64_t claimed) {
  const std::size_t count = reader.count(claimed, sizeof(T), "the length of an array");
  const auto raw = reader.bytes(count * sizeof(T), "an array");
  std::vector<T> values(raw.size() / sizeof(T));
  if (!raw.empty()) std::memcpy(values.data(), raw.data(), raw.size());
  return values;
}

bool read_bool(ByteReader& reader) {
  const auto value = reader.read<std::uint8_t>("a bool");
  if (value > 1) {
    reader.fail(ErrorCode::kDataLoss, "a bool has the value {}, only 0 and 1 are allowed", value);
  }
  return value == 1;
}

std::vector<bool> read_bools(ByteReader& reader, std::uint64_t claimed) {
  const std::size_t count = reader.count(claimed, 1, "the length of an array");
  std::vector<bool> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) values.push_back(read_bool(reader));
  return values;
}

std::vector<std::string> read_strings(ByteReader& reader, std::uint64_t claimed) {
  const std::size_t count = reader.count(claimed, kMinStringBytes, "the length of an array");
  std::vector<std::string> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    values.emplace_back(reader.string(kMaxStringBytes, "a string in an array"));
  }
  return values;
}

MetadataArray read_array(ByteReader& reader) {
  const auto type = reader.read<std::uint32_t>("the type of an array");
  const auto length = reader.read<std::uint64_t>("the length of an array");
  switch (static_cast<GgufType>(type)) {
    case GgufType::kUint8:
      return {read_numbers<std::uint8_t>(reader, length)};
    case GgufType::kInt8:
      return {read_numbers<std::int8_t>(reader, length)};
    case GgufType::kUint16:
      return {read_numbers<std::uint16_t>(reader, length)};
    case GgufType::kInt16:
      return {read_numbers<std::int16_t>(reader, length)};
    case GgufType::kUint32:
      return {read_numbers<std::uint32_t>(reader, length)};
    case GgufType::kInt32:
      return {read_numbers<std::int32_t>(reader, length)};
    case GgufType::kFloat32:
      return {read_numbers<float>(reader, length)};
    case GgufType::kBool:
      return {read_bools(reader, length)};
    case GgufType::kString:
      return {read_strings(reader, length)};
    case GgufType::kUint64:
      return {read_numbers<std::uint64_t>(reader, length)};
    case GgufType::kInt64:
      return {read_numbers<std::int64_t>(reader, length)};
    case GgufType::kFloat64:
      return {read_numbers<double>(reader, length)};
    case GgufType::kArray:
      reader.fail(ErrorCode::kUnimplemented, "an array of arrays, which is not supported");
      return {};
  }
  reader.fail(ErrorCode::kDataLoss, "an array has the unknown element type {}", type);
  return {};
}

MetadataValue read_value(ByteReader& reader) {
  const auto type = reader.read<std::uint32_t>("a value's type");
  switch (static_cast<GgufType>(type)) {
    case GgufType::kUint8:
      return {reader.read<std::uint8_t>("a value")};
    case GgufType::kInt8:
      return {reader.read<std::int8_t>("a value")};
    case GgufType::kUint16:
      return {reader.read<std::uint16_t>("a value")};
    case GgufType::kInt16:
      return {reader.read<std::int16_t>("a value")};
    case GgufType::kUint32:
      return {reader.read<std::uint32_t>("a value")};
    case GgufType::kInt32:
      return {reader.read<std::int32_t>("a value")};
    case GgufType::kFloat32:
      return {reader.read<float>("a value")};
    case GgufType::kBool:
      return {read_bool(reader)};
    case GgufType::kString:
      return {std::string(reader.string(kMaxStringBytes, "a string"))};
    case GgufType::kArray:
      return {read_array(reader)};
    case GgufType::kUint64:
      return {reader.read<std::uint64_t>("a value")};
    case GgufType::kInt64:
      return {reader.read<std::int64_t>("a value")};
    case GgufType::kFloat64:
      return {reader.read<double>("a value")};
  }
  reader.fail(ErrorCode::kDataLoss, "a value has the unknown type {}", type);
  return {};
}

Result<void> read_metadata(ByteReader& reader, std::size_t count, Metadata& metadata) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key(reader.string(kMaxKeyBytes, "a metadata key"));
    SPUD_TRY(reader.status());
    if (key.empty()) return fail(ErrorCode::kDataLoss, "metadata entry {} has an empty key", i);
    if (metadata.find(key) != nullptr) {
      return fail(ErrorCode::kDataLoss, "the metadata key '{}' occurs twice", printable(key));
    }
    auto value = read_value(reader);
    if (auto status = reader.status(); !status) {
      return fail_within(fmt::format("metadata '{}'", printable(key)), std::move(status).error());
    }
    metadata.set(key, std::move(value));
  }
  return {};
}

Result<std::uint64_t> read_alignment(const Metadata& metadata) {
  const MetadataValue* found = metadata.find("general.alignment");
  if (found == nullptr) return kDefaultAlignment;
  const auto* value = std::get_if<std::uint32_t>(&found->value);
  if (value == nullptr) {
    return fail(ErrorCode::kDataLoss, "general.alignment must be a 32-bit unsigned number");
  }
  if (*value < 8 || *value > kMaxAlignment || !std::has_single_bit(*value)) {
    return fail(ErrorCode::kDataLoss,
                "general.alignment is {}, it must be a power of two from 8 to {}", *value,
                kMaxAlignment);
  }
  return *value;
}

Result<tensor::DType> read_dtype(std::uint32_t number) {
  const auto type = static_cast<tensor::DType>(number);
  if (tensor::find_traits(type) != nullptr) return type;
  if (is_removed_tensor_type(number)) {
    return fail(ErrorCode::kUnimplemented,
                "type number {} was removed from GGUF: convert the model again from its source",
                number);
  }
  const std::string_view name = unread_tensor_type_name(number);
  if (name.empty()) return fail(ErrorCode::kDataLoss, "type number {} does not exist", number);
  return fail(ErrorCode::kUnimplemented, "type {} (number {}) is not supported", name, number);
}

// Dimensions, their product and the bytes they take, in arithmetic that cannot wrap.
Result<void> read_shape(ByteReader& reader, TensorInfo& info) {
  const auto dims = reader.read<std::uint32_t>("a tensor's number of dimensions");
  SPUD_TRY(reader.status());
  if (dims == 0 || dims > kMaxDims) {
    return fail(ErrorCode::kDataLoss, "{} dimensions, from 1 to {} are allowed", dims, kMaxDims);
  }
  std::uint64_t values = 1;
  for (std::uint32_t i = 0; i < dims; ++i) {
    const auto extent = reader.read<std::uint64_t>("a tensor's dimension");
    SPUD_TRY(reader.status());
    if (extent == 0) return fail(ErrorCode::kDataLoss, "dimension {} is 0", i);
    const auto product = checked_mul(values, extent);
    if (!product || !std::in_range<std::int64_t>(*product)) {
      return fail(ErrorCode::kDataLoss, "dimension {} is {}: the number of values overflows", i,
                  extent);
    }
    values = *product;
    info.shape.push_back(extent);
  }
  const auto number = reader.read<std::uint32_t>("a tensor's type");
  SPUD_TRY(reader.status());
  SPUD_TRY(info.dtype, read_dtype(number));
  const tensor::DTypeTraits& traits = tensor::traits(info.dtype);
  if (info.shape[0] % traits.block_values != 0) {
    return fail(ErrorCode::kDataLoss, "rows of {} values are not whole blocks of {} ({})",
                info.shape[0], traits.block_values, traits.name);
  }
  const auto size = tensor::bytes_for(info.dtype, values);
  if (!size) return fail(ErrorCode::kDataLoss, "the size of {} values overflows", values);
  info.size_bytes = *size;
  return {};
}

Result<void> read_tensor_infos(ByteReader& reader, std::size_t count, GgufHeader& header) {
  std::unordered_set<std::string_view> names;
  header.tensors.reserve(count);
  header.offsets.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = reader.string(kMaxTensorNameBytes, "a tensor name");
    SPUD_TRY(reader.status());
    const std::string place = fmt::format("tensor '{}'", printable(name));
    if (name.empty()) return fail(ErrorCode::kDataLoss, "tensor {} has an empty name", i);
    if (!names.insert(name).second) {
      return fail(ErrorCode::kDataLoss, "the tensor name '{}' occurs twice", printable(name));
    }
    TensorInfo info;
    info.name = name;
    if (auto shape = read_shape(reader, info); !shape) {
      return fail_within(place, std::move(shape).error());
    }
    const auto offset = reader.read<std::uint64_t>("a tensor's offset");
    if (auto status = reader.status(); !status) {
      return fail_within(place, std::move(status).error());
    }
    header.tensors.push_back(std::move(info));
    header.offsets.push_back(offset);
  }
  return {};
}

// Offsets must be the running padded sum, as writers make them: then nothing overlaps and all
// tensors together are no larger than the file. Turns them into offsets from the file's start.
Result<void> place_tensors(GgufHeader& header, std::uint64_t data_start, std::uint64_t file_size) {
  std::uint64_t expected = 0;
  header.data_end = header.tensors.empty() ? header.data_end : data_start;
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const TensorInfo& info = header.tensors[i];
    std::uint64_t& offset = header.offsets[i];
    if (offset != expected) {
      return fail(ErrorCode::kDataLoss,
                  "tensor '{}' is at offset {}, but the tensors before it end at {}",
                  printable(info.name), offset, expected);
    }
    const auto padded = checked_round_up(info.size_bytes, header.alignment);
    const auto next = padded ? checked_add(expected, *padded) : std::nullopt;
    if (!next || data_start > file_size || expected > file_size - data_start ||
        info.size_bytes > file_size - data_start - expected) {
      return fail(ErrorCode::kDataLoss,
                  "tensor '{}' needs {} bytes at offset {}, but the file has only {} bytes: it is "
                  "truncated or damaged",
                  printable(info.name), info.size_bytes, data_start + expected, file_size);
    }
    offset = data_start + expected;
    header.data_end = offset + info.size_bytes;
    expected = *next;
  }
  return {};
}

Result<void> read_version(ByteReader& reader, GgufHeader& header) {
  const auto magic = reader.bytes(kMagic.size(), "the format's mark");
  SPUD_TRY(reader.status());
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    return fail(ErrorCode::kInvalidArgument, "not a GGUF file: it does not begin with 'GGUF'");
  }
  header.version = reader.read<std::uint32_t>("the version");
  SPUD_TRY(reader.status());
  if (header.version != 0 && (header.version & 0xFFFFU) == 0) {
    return fail(ErrorCode::kUnimplemented, "a big-endian GGUF file, only little-endian is read");
  }
  if (header.version < 2 || header.version > 3) {
    return fail(ErrorCode::kUnimplemented, "GGUF version {}, only 2 and 3 are read",
                header.version);
  }
  return {};
}

}  // namespace

Result<MetadataValue> parse_gguf_value(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  MetadataValue value = read_value(reader);
  if (reader.remaining() > 0) {
    reader.fail(ErrorCode::kDataLoss, "{} bytes follow the value", reader.remaining());
  }
  SPUD_TRY(reader.status());
  return value;
}

Result<GgufHeader> parse_gguf(std::span<const std::byte> bytes) {
  GgufHeader header;
  ByteReader reader(bytes);
  SPUD_TRY(read_version(reader, header));
  const auto claimed_tensors = reader.read<std::uint64_t>("the number of tensors");
  const auto claimed_entries = reader.read<std::uint64_t>("the number of metadata entries");
  const auto num_tensors = reader.count(claimed_tensors, kMinTensorBytes, "the number of tensors");
  const auto num_entries =
      reader.count(claimed_entries, kMinEntryBytes, "the number of metadata entries");
  SPUD_TRY(reader.status());
  SPUD_TRY(read_metadata(reader, num_entries, header.metadata));
  header.metadata_end = reader.position();
  SPUD_TRY(header.alignment, read_alignment(header.metadata));
  // Again, against what is left now: both sections share the bytes.
  reader.count(num_tensors, kMinTensorBytes, "the number of tensors");
  SPUD_TRY(reader.status());
  SPUD_TRY(read_tensor_infos(reader, num_tensors, header));
  header.data_end = reader.position();
  const auto data_start = checked_round_up<std::uint64_t>(reader.position(), header.alignment);
  if (!data_start) return fail(ErrorCode::kDataLoss, "the start of the tensor data overflows");
  SPUD_TRY(place_tensors(header, *data_start, bytes.size()));
  return header;
}

}  // namespace spud::formats
