// SPDX-License-Identifier: Apache-2.0
// The header is read by a SAX parser: no tree is built, so its memory is what the entries need, and
// names that occur twice are seen.
#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <unordered_set>

#include "base/checked_math.hpp"
#include "formats/safetensors.hpp"
#include "io/byte_reader.hpp"
#include "io/mapped_file.hpp"

namespace spud::formats {
namespace {

using io::printable;
namespace json = boost::json;
using JsonError = boost::system::error_code;

struct KnownType {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr KnownType kTypes[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
    {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
    {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

const KnownType* find_type(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &KnownType::name);
  return found == std::end(kTypes) ? nullptr : found;
}

// Receives the header piece by piece. Depth 1 holds names, depth 2 the fields of one tensor (or
// the texts of __metadata__), depth 3 the numbers of "shape" and "data_offsets".
class HeaderHandler {
 public:
  // Limits the parser asks for, by these names.
  // NOLINTBEGIN(readability-identifier-naming)
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = 65536;
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  // NOLINTEND(readability-identifier-naming)

  SafetensorsHeader header;
  std::string problem;

  bool on_document_begin(JsonError&) { return true; }
  bool on_document_end(JsonError&) { return true; }

  bool on_object_begin(JsonError& error) {
    if (++depth_ == 1) return true;
    if (depth_ > 2 || in_array_) return stop(error, "objects are nested too deeply");
    if (!in_metadata_) {
      header.entries.push_back({.name = key_});
      fields_ = 0;
    }
    return true;
  }
  bool on_object_end(std::size_t, JsonError& error) {
    if (--depth_ == 0) return true;
    if (in_metadata_) {
      in_metadata_ = false;
      return true;
    }
    if (fields_ != (kDtype | kShape | kOffsets)) {
      return stop(error, "tensor '{}' lacks dtype, shape or data_offsets",
                  printable(header.entries.back().name));
    }
    return true;
  }
  bool on_array_begin(JsonError& error) {
    if (depth_ != 2 || in_metadata_ || in_array_ || (field_ != kShape && field_ != kOffsets)) {
      return stop(error, "a list where none belongs");
    }
    in_array_ = true;
    count_ = 0;
    return true;
  }
  bool on_array_end(std::size_t, JsonError& error) {
    in_array_ = false;
    if (field_ == kOffsets && count_ != 2) return stop(error, "data_offsets must be two numbers");
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, JsonError&) {
    text_ += std::string_view(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, JsonError& error) {
    key_ = std::exchange(text_, {}) + std::string(part.data(), part.size());
    return depth_ == 1 ? on_name(error) : on_field(error);
  }
  bool on_string_part(json::string_view part, std::size_t, JsonError&) {
    text_ += std::string_view(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, JsonError& error) {
    std::string text = std::exchange(text_, {}) + std::string(part.data(), part.size());
    if (depth_ == 2 && in_metadata_) {
      header.metadata.emplace_back(key_, std::move(text));
      return true;
    }
    if (depth_ != 2 || in_array_ || field_ != kDtype)
      return stop(error, "a text where none belongs");
    header.entries.back().dtype = std::move(text);
    return true;
  }
  bool on_int64(std::int64_t value, json::string_view, JsonError& error) {
    if (value < 0) return stop(error, "the negative number {}", value);
    return on_uint64(static_cast<std::uint64_t>(value), {}, error);
  }
  bool on_uint64(std::uint64_t value, json::string_view, JsonError& error) {
    if (!in_array_) return stop(error, "a number where none belongs");
    SafetensorsEntry& entry = header.entries.back();
    ++count_;
    if (field_ == kShape) {
      if (count_ > kMaxSafetensorsDims) {
        return stop(error, "tensor '{}' has more than {} dimensions", printable(entry.name),
                    kMaxSafetensorsDims);
      }
      entry.shape.push_back(value);
    } else if (count_ == 1) {
      entry.begin = value;
    } else {
      entry.end = value;
    }
    return true;
  }
  bool on_number_part(json::string_view, JsonError&) { return true; }
  bool on_double(double, json::string_view, JsonError& error) {
    return stop(error, "a number that is not a whole one");
  }
  bool on_bool(bool, JsonError& error) { return stop(error, "a bool where none belongs"); }
  bool on_null(JsonError& error) { return stop(error, "a null where none belongs"); }
  bool on_comment_part(json::string_view, JsonError&) { return true; }
  bool on_comment(json::string_view, JsonError&) { return true; }

 private:
  enum Field : unsigned { kNone = 0, kDtype = 1, kShape = 2, kOffsets = 4 };

  template <typename... Args>
  bool stop(JsonError& error, fmt::format_string<Args...> format, Args&&... args) {
    problem = fmt::format(format, std::forward<Args>(args)...);
    error = json::make_error_code(json::error::exception);
    return false;
  }
  bool on_name(JsonError& error) {
    if (!names_.insert(key_).second) return stop(error, "'{}' occurs twice", printable(key_));
    in_metadata_ = key_ == "__metadata__";
    return true;
  }
  bool on_field(JsonError& error) {
    if (in_metadata_) return true;
    field_ = key_ == "dtype"          ? kDtype
             : key_ == "shape"        ? kShape
             : key_ == "data_offsets" ? kOffsets
                                      : kNone;
    if (field_ == kNone || (fields_ & field_) != 0) {
      return stop(error, "tensor '{}': the field '{}' is unknown or occurs twice",
                  printable(header.entries.back().name), printable(key_));
    }
    fields_ |= field_;
    return true;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_array_ = false;
  unsigned field_ = kNone;
  unsigned fields_ = 0;
  std::size_t count_ = 0;
  std::string key_;
  std::string text_;
  std::unordered_set<std::string> names_;
};

Result<SafetensorsHeader> parse_header(std::string_view text) {
  if (!text.starts_with('{')) {
    return fail(ErrorCode::kDataLoss, "the header does not begin with '{{'");
  }
  json::basic_parser<HeaderHandler> parser{json::parse_options{}};
  JsonError error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  HeaderHandler& handler = parser.handler();
  if (!handler.problem.empty()) {
    return fail(ErrorCode::kDataLoss, "the header: {}", handler.problem);
  }
  if (error || !parser.done()) {
    return fail(ErrorCode::kDataLoss, "the header is not valid JSON: {}",
                error ? error.message() : "it ends too early");
  }
  if (text.find_first_not_of(" \t\r\n", used) != std::string_view::npos) {
    return fail(ErrorCode::kDataLoss, "the header is not valid JSON: text follows it");
  }
  return std::move(handler.header);
}

// Bytes that type and shape ask for.
Result<std::uint64_t> expected_bytes(const SafetensorsEntry& entry) {
  const KnownType* type = find_type(entry.dtype);
  if (type == nullptr) {
    return fail(ErrorCode::kUnimplemented, "the type '{}' is unknown", printable(entry.dtype));
  }
  std::uint64_t bytes = type->bytes;
  for (const std::uint64_t extent : entry.shape) {
    const auto product = checked_mul(bytes, extent);
    if (!product) return fail(ErrorCode::kDataLoss, "the size of its shape overflows");
    bytes = *product;
  }
  return bytes;
}

// One after the other without hole or overlap, up to the end of the file.
Result<void> check_ranges(std::vector<SafetensorsEntry>& entries, std::uint64_t data_start,
                          std::uint64_t file_size) {
  std::ranges::sort(
      entries, {}, [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t position = 0;
  for (SafetensorsEntry& entry : entries) {
    const std::string place = fmt::format("tensor '{}'", printable(entry.name));
    if (entry.begin != position || entry.end < entry.begin) {
      return fail(ErrorCode::kDataLoss,
                  "{} has the bytes {} to {}, but {} is where they must begin", place, entry.begin,
                  entry.end, position);
    }
    auto bytes = expected_bytes(entry);
    if (!bytes) return fail_within(place, std::move(bytes).error());
    if (*bytes != entry.end - entry.begin) {
      return fail(ErrorCode::kDataLoss, "{} has {} bytes, but its type and shape ask for {}", place,
                  entry.end - entry.begin, *bytes);
    }
    if (entry.end > file_size - data_start) {
      return fail(ErrorCode::kDataLoss,
                  "{} ends at byte {} of the data, but the file has only {}: it is truncated",
                  place, entry.end, file_size - data_start);
    }
    position = entry.end;
    entry.begin += data_start;
    entry.end += data_start;
  }
  if (position != file_size - data_start) {
    return fail(ErrorCode::kDataLoss, "{} bytes follow the last tensor",
                file_size - data_start - position);
  }
  return {};
}

class SafetensorsFile final : public ModelFile {
 public:
  SafetensorsFile(io::MappedFile file, Metadata metadata, std::vector<TensorInfo> tensors,
                  std::vector<std::span<const std::byte>> data)
      : file_(std::move(file)),
        metadata_(std::move(metadata)),
        tensors_(std::move(tensors)),
        data_(std::move(data)) {}

  std::string_view format() const noexcept override { return "safetensors"; }
  const Metadata& metadata() const noexcept override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const noexcept override { return tensors_; }
  std::span<const std::byte> tensor_bytes(std::size_t index) const noexcept override {
    return data_[index];
  }
  std::uint64_t file_bytes() const noexcept override { return file_.bytes().size(); }

 private:
  io::MappedFile file_;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::span<const std::byte>> data_;
};

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> bytes) {
  io::ByteReader reader(bytes);
  const auto length = reader.read<std::uint64_t>("the header's length");
  SPUD_TRY(reader.status());
  if (length > kMaxSafetensorsHeaderBytes) {
    return fail(ErrorCode::kDataLoss, "the header is {} bytes long, more than the limit of {}",
                length, kMaxSafetensorsHeaderBytes);
  }
  const auto raw = reader.bytes(length, "the header");
  SPUD_TRY(reader.status());
  SPUD_TRY(auto header, parse_header({reinterpret_cast<const char*>(raw.data()), raw.size()}));
  SPUD_TRY(check_ranges(header.entries, reader.position(), bytes.size()));
  return header;
}

Result<TensorInfo> to_tensor_info(const SafetensorsEntry& entry) {
  const std::string place = fmt::format("tensor '{}'", printable(entry.name));
  const auto type = tensor::find_dtype(entry.dtype);
  if (!type || tensor::traits(*type).quantised) {
    return fail(ErrorCode::kUnimplemented, "{}: values of type {} are not supported", place,
                printable(entry.dtype));
  }
  TensorInfo info{
      entry.name, *type, {entry.shape.rbegin(), entry.shape.rend()}, entry.end - entry.begin};
  if (info.shape.empty()) info.shape = {1};
  if (info.shape.size() > 4) {
    return fail(ErrorCode::kUnimplemented, "{} has {} dimensions, at most 4 are supported", place,
                info.shape.size());
  }
  return info;
}

Result<std::shared_ptr<const ModelFile>> open_safetensors(const std::filesystem::path& path) {
  SPUD_TRY(auto file, io::MappedFile::open(path));
  const std::string place = fmt::format("'{}'", path.string());
  auto header = parse_safetensors(file.bytes());
  if (!header) return fail_within(place, std::move(header).error());
  Metadata metadata;
  for (auto& [key, value] : header->metadata) {
    metadata.set("safetensors." + key, {std::move(value)});
  }
  std::vector<TensorInfo> tensors;
  std::vector<std::span<const std::byte>> data;
  for (const SafetensorsEntry& entry : header->entries) {
    auto info = to_tensor_info(entry);
    if (!info) return fail_within(place, std::move(info).error());
    tensors.push_back(*std::move(info));
    data.push_back(file.bytes().subspan(entry.begin, entry.end - entry.begin));
  }
  return std::make_shared<const SafetensorsFile>(std::move(file), std::move(metadata),
                                                 std::move(tensors), std::move(data));
}

}  // namespace spud::formats
