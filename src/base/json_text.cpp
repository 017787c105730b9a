// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

namespace spud {
namespace {

void write(const boost::json::value& value, std::size_t indent, std::string& out) {
  const std::string inner(indent + 2, ' ');
  const std::string outer(indent, ' ');
  if (const auto* object = value.if_object(); object != nullptr && !object->empty()) {
    out += "{\n";
    for (auto it = object->begin(); it != object->end(); ++it) {
      if (it != object->begin()) out += ",\n";
      out += inner + boost::json::serialize(boost::json::string(it->key())) + ": ";
      write(it->value(), indent + 2, out);
    }
    out += "\n" + outer + "}";
  } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
    out += "[\n";
    for (auto it = array->begin(); it != array->end(); ++it) {
      if (it != array->begin()) out += ",\n";
      out += inner;
      write(*it, indent + 2, out);
    }
    out += "\n" + outer + "]";
  } else if (const auto* number = value.if_double()) {
    // The shortest text that reads back the same; JSON has no NaN or infinity.
    out += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

std::string pretty_json(const boost::json::value& value) {
  std::string out;
  write(value, 0, out);
  out += '\n';
  return out;
}

}  // namespace spud
