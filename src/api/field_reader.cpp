// SPDX-License-Identifier: Apache-2.0
#include "api/field_reader.hpp"

#include <boost/json.hpp>
#include <cmath>

namespace spud::api {
namespace json = boost::json;

namespace {
constexpr std::size_t kMaxShownBytes = 60;
}

std::optional<std::int64_t> as_integer(const json::value& value) noexcept {
  if (const auto* integer = value.if_int64()) return *integer;
  if (const auto* number = value.if_double()) {
    // 2^53: beyond it a double no longer names one integer.
    if (std::nearbyint(*number) == *number && std::abs(*number) <= 9007199254740992.0) {
      return static_cast<std::int64_t>(*number);
    }
  }
  return std::nullopt;
}

std::string shown(const json::value& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = json::serialize(value);
  if (text.size() <= kMaxShownBytes) return text;
  std::size_t end = kMaxShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

const json::value* FieldReader::find(std::string_view name) const noexcept {
  const json::value* value = object_->if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void FieldReader::complain(std::string_view param, std::string message) {
  if (!error_) {
    error_ = Error(ErrorCode::kInvalidArgument, std::move(message)).with_param(std::string(param));
  }
}

Result<void> FieldReader::result() const {
  if (error_) return std::unexpected(*error_);
  return {};
}

void FieldReader::boolean(std::string_view name, bool& target) {
  const json::value* value = find(name);
  if (value == nullptr) return;
  if (const bool* flag = value->if_bool()) {
    target = *flag;
  } else {
    complain(name, fmt::format("'{}' must be true or false, not {}", name, shown(*value)));
  }
}

void FieldReader::integer(std::string_view name, std::int64_t min, std::int64_t max,
                          std::int64_t& target) {
  std::optional<std::int64_t> read;
  integer(name, min, max, read);
  if (read) target = *read;
}

void FieldReader::integer(std::string_view name, std::int64_t min, std::int64_t max,
                          std::optional<std::int64_t>& target) {
  const json::value* value = find(name);
  if (value == nullptr) return;
  const auto integer = as_integer(*value);
  if (!integer && !value->is_number()) {
    complain(name, fmt::format("'{}' must be a whole number, not {}", name, shown(*value)));
  } else if (!integer || *integer < min || *integer > max) {
    complain(name, fmt::format("'{}' must be a whole number from {} to {}, not {}", name, min, max,
                               shown(*value)));
  } else {
    target = integer;
  }
}

void FieldReader::number(std::string_view name, double min, double max, float& target) {
  const json::value* value = find(name);
  if (value == nullptr) return;
  if (!value->is_number()) {
    complain(name, fmt::format("'{}' must be a number, not {}", name, shown(*value)));
    return;
  }
  const auto number = value->to_number<double>();
  if (!(number >= min && number <= max)) {  // NaN does not pass either
    complain(name,
             fmt::format("'{}' must be from {} to {}, not {}", name, min, max, shown(*value)));
    return;
  }
  target = static_cast<float>(number);
}

void FieldReader::text(std::string_view name, std::size_t max_bytes, std::string& target) {
  const json::value* value = find(name);
  if (value == nullptr) return;
  const auto* string = value->if_string();
  if (string == nullptr) {
    complain(name, fmt::format("'{}' must be a string, not {}", name, shown(*value)));
  } else if (string->size() > max_bytes) {
    complain(name, fmt::format("'{}' is longer than {} bytes", name, max_bytes));
  } else {
    target = std::string(*string);
  }
}

}  // namespace spud::api
