// SPDX-License-Identifier: Apache-2.0
// Text to JSON under limits, for bodies that strangers send. Of duplicate keys the last one counts
// (as for Python's and OpenAI's parsers); trailing text, comments and invalid UTF-8 are refused.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "base/result.hpp"

namespace spud::api {

inline constexpr std::size_t kMaxJsonDepth = 32;

// kInvalidArgument with the byte position and what was wrong.
[[nodiscard]] Result<boost::json::value> parse_json(std::string_view text);
// The same, and it must be an object.
[[nodiscard]] Result<boost::json::object> parse_json_object(std::string_view text);

}  // namespace spud::api
