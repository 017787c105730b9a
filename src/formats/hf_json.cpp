// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_json.hpp"

#include <boost/json/parse.hpp>
#include <utility>

#include "base/sha256.hpp"
#include "formats/gguf.hpp"
#include "io/byte_reader.hpp"
#include "io/mapped_file.hpp"

namespace spud::formats {
namespace {

constexpr std::string_view kLeftovers = "gguf_metadata";
constexpr std::string_view kAbsent = "gguf_metadata_absent";

std::optional<std::string> from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return std::nullopt;
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return bytes;
}

std::string encoded(const MetadataValue& value) {
  std::string bytes;
  append_gguf_value(bytes, value);
  return bytes;
}

}  // namespace

Result<json::object> read_json_object(const std::filesystem::path& path, std::uint64_t limit) {
  SPUD_TRY(const auto file, io::MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > limit) {
    return fail(ErrorCode::kDataLoss, "'{}' has {} bytes, more than the limit of {}", path.string(),
                bytes.size(), limit);
  }
  boost::system::error_code error;
  json::value value =
      json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, error);
  if (error) {
    return fail(ErrorCode::kDataLoss, "'{}' is not valid JSON: {}", path.string(), error.message());
  }
  if (!value.is_object()) {
    return fail(ErrorCode::kDataLoss, "'{}' does not hold a JSON object", path.string());
  }
  return std::move(value.as_object());
}

Result<json::object> read_json_object_if_there(const std::filesystem::path& path,
                                               std::uint64_t limit) {
  auto object = read_json_object(path, limit);
  if (!object && object.error().code() == ErrorCode::kNotFound) return json::object{};
  return object;
}

const json::value* find_value(const json::object& object, std::string_view key) noexcept {
  return object.if_contains(json_view(key));
}

const json::object* find_object(const json::object& object, std::string_view key) noexcept {
  const json::value* value = find_value(object, key);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* find_array(const json::object& object, std::string_view key) noexcept {
  const json::value* value = find_value(object, key);
  return value == nullptr ? nullptr : value->if_array();
}

std::optional<std::string_view> find_text(const json::object& object,
                                          std::string_view key) noexcept {
  const json::value* value = find_value(object, key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::nullopt : std::optional(std_view(*text));
}

std::optional<std::uint64_t> find_whole(const json::object& object, std::string_view key) noexcept {
  const json::value* value = find_value(object, key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->if_int64(); number != nullptr && *number >= 0) {
    return static_cast<std::uint64_t>(*number);
  }
  if (const auto* number = value->if_uint64()) return *number;
  return std::nullopt;
}

std::optional<double> find_real(const json::object& object, std::string_view key) noexcept {
  const json::value* value = find_value(object, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  if (const auto* number = value->if_double()) return *number;
  if (const auto* number = value->if_int64()) return static_cast<double>(*number);
  return static_cast<double>(*value->if_uint64());
}

std::optional<bool> find_flag(const json::object& object, std::string_view key) noexcept {
  const json::value* value = find_value(object, key);
  const bool* flag = value == nullptr ? nullptr : value->if_bool();
  return flag == nullptr ? std::nullopt : std::optional(*flag);
}

json::object leftovers(const Metadata& wanted, const Metadata& rebuilt) {
  json::object kept;
  for (const Metadata::Entry& entry : wanted.entries()) {
    std::string bytes = encoded(entry.value);
    const MetadataValue* other = rebuilt.find(entry.key);
    if (other != nullptr && encoded(*other) == bytes) continue;
    kept[json_view(entry.key)] = to_hex(std::as_bytes(std::span(bytes)));
  }
  json::array absent;
  for (const Metadata::Entry& entry : rebuilt.entries()) {
    if (wanted.find(entry.key) == nullptr) absent.emplace_back(json_view(entry.key));
  }
  json::object result;
  if (!kept.empty()) result[json_view(kLeftovers)] = std::move(kept);
  if (!absent.empty()) result[json_view(kAbsent)] = std::move(absent);
  return result;
}

Result<void> apply_leftovers(const json::object& config, Metadata& metadata) {
  if (const json::array* absent = find_array(config, kAbsent)) {
    for (const json::value& key : *absent) {
      if (const json::string* text = key.if_string()) metadata.erase(std_view(*text));
    }
  }
  const json::object* kept = find_object(config, kLeftovers);
  if (kept == nullptr) return {};
  for (const auto& [name, value] : *kept) {
    const std::string_view key(name.data(), name.size());
    const json::string* text = value.if_string();
    const auto bytes = text == nullptr ? std::nullopt : from_hex(std_view(*text));
    if (!bytes || key.empty() || key.size() > kMaxKeyBytes) {
      return fail(ErrorCode::kDataLoss, "{}: '{}' is not a value in hexadecimal", kLeftovers,
                  io::printable(key));
    }
    auto parsed = parse_gguf_value(std::as_bytes(std::span(*bytes)));
    if (!parsed) {
      return fail_within(fmt::format("{}: '{}'", kLeftovers, io::printable(key)),
                         std::move(parsed).error());
    }
    metadata.set(key, *std::move(parsed));
  }
  return {};
}

}  // namespace spud::formats
