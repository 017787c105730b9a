// SPDX-License-Identifier: Apache-2.0
// One field list per struct writes and reads JSON: a struct takes part by a function
//
//   template <typename A> void fields(A& archive, Attempt& a) { archive("file", a.file); ... }
//
// beside its user, found by overload. Reading is strict: a missing or mistyped field is an error
// with its path (the journal is ours; what does not fit is damaged or of another version).
// Doubles that are not finite become null and come back as NaN. Not for figures that must come back
// bit by bit (the JSON parser may be off in the last place): those are kept as hexadecimal text.
#pragma once

#include <boost/json.hpp>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spud::compress::internal {

// An enum that is kept as text: `names(T{})` gives its names in order of value.
template <typename T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) { enum_names(value).size(); };

class JsonWriter {
 public:
  template <typename T>
  void operator()(std::string_view name, const T& value) {
    object_[name] = convert(value);
  }
  boost::json::object take() { return std::move(object_); }

  template <typename T>
  static boost::json::value convert(const T& value) {
    if constexpr (std::same_as<T, bool>) {
      return value;
    } else if constexpr (NamedEnum<T>) {
      return boost::json::string(enum_names(value)[static_cast<std::size_t>(value)]);
    } else if constexpr (std::floating_point<T>) {
      return std::isfinite(value) ? boost::json::value(static_cast<double>(value))
                                  : boost::json::value(nullptr);
    } else if constexpr (std::integral<T>) {
      return value;
    } else if constexpr (std::same_as<T, std::string>) {
      return boost::json::string(value);
    } else {
      return convert_compound(value);
    }
  }

 private:
  template <typename T>
  static boost::json::value convert_compound(const std::vector<T>& values) {
    boost::json::array array;
    for (const T& value : values) array.push_back(convert(value));
    return array;
  }
  template <typename T>
  static boost::json::value convert_compound(const std::optional<T>& value) {
    return value ? convert(*value) : boost::json::value(nullptr);
  }
  template <typename T>
  static boost::json::value convert_compound(const std::map<std::string, T, std::less<>>& values) {
    boost::json::object object;
    for (const auto& [key, value] : values) object[key] = convert(value);
    return object;
  }
  template <typename T>
  static boost::json::value convert_compound(const T& value) {
    JsonWriter inner;
    fields(inner, const_cast<T&>(value));  // the list is shared with the reader; the writer reads
    return inner.take();
  }

  boost::json::object object_;
};

// Throws std::runtime_error; parse_json_text below turns it into an Error.
class JsonReader {
 public:
  explicit JsonReader(const boost::json::object& object) : object_(object) {}

  template <typename T>
  void operator()(std::string_view name, T& value) {
    const auto* found = object_.if_contains(name);
    if (found == nullptr) throw std::runtime_error(fmt::format("'{}' is missing", name));
    try {
      convert(*found, value);
    } catch (const std::exception& e) {
      throw std::runtime_error(fmt::format("'{}': {}", name, e.what()));
    }
  }

  template <typename T>
  static void convert(const boost::json::value& json, T& value) {
    if constexpr (std::same_as<T, bool>) {
      value = json.as_bool();
    } else if constexpr (NamedEnum<T>) {
      convert_enum(json.as_string(), value);
    } else if constexpr (std::floating_point<T>) {
      value = json.is_null() ? std::numeric_limits<T>::quiet_NaN() : json.to_number<T>();
    } else if constexpr (std::integral<T>) {
      value = json.to_number<T>();
    } else if constexpr (std::same_as<T, std::string>) {
      value = std::string(json.as_string());
    } else {
      convert_compound(json, value);
    }
  }

 private:
  template <typename T>
  static void convert_enum(std::string_view text, T& value) {
    const auto names = enum_names(value);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) {
        value = static_cast<T>(i);
        return;
      }
    }
    throw std::runtime_error(fmt::format("unknown value '{}'", text));
  }
  template <typename T>
  static void convert_compound(const boost::json::value& json, std::vector<T>& values) {
    values.clear();
    for (const auto& item : json.as_array()) {
      T value{};
      convert(item, value);
      values.push_back(std::move(value));
    }
  }
  template <typename T>
  static void convert_compound(const boost::json::value& json, std::optional<T>& value) {
    value.reset();
    if (json.is_null()) return;
    value.emplace();
    convert(json, *value);
  }
  template <typename T>
  static void convert_compound(const boost::json::value& json,
                               std::map<std::string, T, std::less<>>& values) {
    values.clear();
    for (const auto& item : json.as_object()) convert(item.value(), values[item.key()]);
  }
  template <typename T>
  static void convert_compound(const boost::json::value& json, T& value) {
    JsonReader inner(json.as_object());
    fields(inner, value);
  }

  const boost::json::object& object_;
};

template <typename T>
[[nodiscard]] Result<T> parse_json_text(std::string_view text, std::string_view what) {
  try {
    const boost::json::value json = boost::json::parse(text);
    T value{};
    JsonReader::convert(json, value);
    return value;
  } catch (const std::exception& e) {
    return fail(ErrorCode::kDataLoss, "{} cannot be read: {}", what, e.what());
  }
}

}  // namespace spud::compress::internal
