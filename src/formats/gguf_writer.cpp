// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <concepts>
#include <type_traits>
#include <unordered_set>

#include "base/checked_math.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_types.hpp"
#include "formats/write_tensors.hpp"
#include "io/atomic_file.hpp"
#include "io/byte_reader.hpp"

namespace spud::formats {
namespace {

constexpr std::uint32_t kWrittenVersion = 3;

template <typename T>
  requires std::is_arithmetic_v<T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out.append(text);
}

// The arrays' variant lists the element types in GGUF's order, without the array itself.
std::uint32_t element_type(const MetadataArray& array) {
  const auto index = static_cast<std::uint32_t>(array.values.index());
  return index < static_cast<std::uint32_t>(GgufType::kArray) ? index : index + 1;
}

void append(std::string& out, const MetadataArray& array) {
  append(out, element_type(array));
  std::visit(
      [&out](const auto& values) {
        append(out, std::uint64_t{values.size()});
        for (const auto& value : values) {
          using T = typename std::decay_t<decltype(values)>::value_type;
          if constexpr (std::same_as<T, bool>) {
            append(out, static_cast<std::uint8_t>(value ? 1 : 0));
          } else if constexpr (std::same_as<T, std::string>) {
            append(out, std::string_view(value));
          } else {
            append(out, value);
          }
        }
      },
      array.values);
}

Result<std::uint64_t> written_alignment(const Metadata& metadata) {
  if (metadata.find("general.alignment") == nullptr) return kDefaultAlignment;
  const auto value = metadata.find_uint("general.alignment");
  if (!value || *value < 8 || *value > kMaxAlignment || !std::has_single_bit(*value)) {
    return fail(ErrorCode::kInvalidArgument,
                "general.alignment must be a power of two from 8 to {}", kMaxAlignment);
  }
  return *value;
}

// What our own reader would refuse is not written in the first place.
Result<void> check_tensor(const TensorInfo& info) {
  const auto fail_tensor = [&info](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, "tensor '{}' cannot be written: {}",
                io::printable(info.name), why);
  };
  if (info.name.empty() || info.name.size() > kMaxTensorNameBytes) {
    return fail_tensor(fmt::format("its name has {} bytes, from 1 to {} are allowed",
                                   info.name.size(), kMaxTensorNameBytes));
  }
  if (info.shape.empty() || info.shape.size() > 4) {
    return fail_tensor(fmt::format("it has {} dimensions", info.shape.size()));
  }
  std::uint64_t values = 1;
  for (const std::uint64_t extent : info.shape) {
    const auto product = checked_mul(values, extent);
    if (!product || *product == 0) return fail_tensor("its dimensions are 0 or overflow");
    values = *product;
  }
  if (tensor::find_traits(info.dtype) == nullptr) return fail_tensor("its type is unknown");
  const tensor::DTypeTraits& traits = tensor::traits(info.dtype);
  if (info.shape[0] % traits.block_values != 0) {
    return fail_tensor(fmt::format("rows of {} values are not whole blocks of {} ({})",
                                   info.shape[0], traits.block_values, traits.name));
  }
  if (tensor::bytes_for(info.dtype, values) != info.size_bytes) {
    return fail_tensor(fmt::format("{} bytes do not match its type and shape", info.size_bytes));
  }
  return {};
}

Result<void> append_tensor_infos(std::string& out, std::span<const WriteTensor> tensors,
                                 std::uint64_t alignment) {
  std::unordered_set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const WriteTensor& tensor : tensors) {
    SPUD_TRY(check_tensor(tensor.info));
    if (!names.insert(tensor.info.name).second) {
      return fail(ErrorCode::kInvalidArgument, "two tensors are called '{}'",
                  io::printable(tensor.info.name));
    }
    append(out, std::string_view(tensor.info.name));
    append(out, static_cast<std::uint32_t>(tensor.info.shape.size()));
    for (const std::uint64_t extent : tensor.info.shape) append(out, extent);
    append(out, static_cast<std::uint32_t>(tensor.info.dtype));
    append(out, offset);
    const auto padded = checked_round_up(tensor.info.size_bytes, alignment);
    const auto next = padded ? checked_add(offset, *padded) : std::nullopt;
    if (!next) return fail(ErrorCode::kInvalidArgument, "the sizes of the tensors overflow");
    offset = *next;
  }
  return {};
}

}  // namespace

void append_gguf_value(std::string& out, const MetadataValue& value) {
  append(out, static_cast<std::uint32_t>(value.value.index()));
  std::visit(
      [&out](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::same_as<T, bool>) {
          append(out, static_cast<std::uint8_t>(v ? 1 : 0));
        } else if constexpr (std::same_as<T, std::string>) {
          append(out, std::string_view(v));
        } else {
          append(out, v);
        }
      },
      value.value);
}

void append_gguf_entry(std::string& out, const Metadata::Entry& entry) {
  append(out, std::string_view(entry.key));
  append_gguf_value(out, entry.value);
}

Result<void> write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                        std::span<const WriteTensor> tensors) {
  SPUD_TRY(const auto alignment, written_alignment(metadata));
  std::string head = "GGUF";
  append(head, kWrittenVersion);
  append(head, std::uint64_t{tensors.size()});
  append(head, std::uint64_t{metadata.entries().size()});
  for (const Metadata::Entry& entry : metadata.entries()) append_gguf_entry(head, entry);
  SPUD_TRY(append_tensor_infos(head, tensors, alignment));

  SPUD_TRY(auto file, io::AtomicFile::create(path));
  SPUD_TRY(file.write(head));
  SPUD_TRY(file.pad_to(alignment));
  SPUD_TRY(write_tensors(file, tensors, alignment));
  return file.commit();
}

}  // namespace spud::formats
