// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a JSON object one by one, checks type and range, and keeps the first
// complaint: callers read everything and ask result() once. An absent field and an explicit null
// both leave the target as it is.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace spud::api {

// Thread-compatible; looks at an object that must outlive it.
class FieldReader {
 public:
  explicit FieldReader(const boost::json::object& object) : object_(&object) {}

  // The value unless absent or null.
  const boost::json::value* find(std::string_view name) const noexcept;

  void boolean(std::string_view name, bool& target);
  // Whole numbers; 16.0 counts as 16.
  void integer(std::string_view name, std::int64_t min, std::int64_t max, std::int64_t& target);
  void integer(std::string_view name, std::int64_t min, std::int64_t max,
               std::optional<std::int64_t>& target);
  void number(std::string_view name, double min, double max, float& target);
  void text(std::string_view name, std::size_t max_bytes, std::string& target);

  // Records a complaint about `param`, unless there is one already.
  void complain(std::string_view param, std::string message);
  bool ok() const noexcept { return !error_.has_value(); }
  [[nodiscard]] Result<void> result() const;

 private:
  const boost::json::object* object_;
  std::optional<Error> error_;
};

// The value as a whole number, if it is one that fits.
std::optional<std::int64_t> as_integer(const boost::json::value& value) noexcept;
// As compact JSON, cut to a length fit for a message.
std::string shown(const boost::json::value& value);

}  // namespace spud::api
