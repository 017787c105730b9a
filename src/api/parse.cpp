// SPDX-License-Identifier: Apache-2.0
#include "api/parse.hpp"

#include <boost/json.hpp>

namespace spud::api {
namespace json = boost::json;

Result<json::value> parse_json(std::string_view text) {
  if (text.empty()) return fail(ErrorCode::kInvalidArgument, "the request has no body");
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  try {
    // One growing block for all values: given back whole, however many small values a body holds.
    json::parser parser(json::make_shared_resource<json::monotonic_resource>(), options);
    json::error_code error;
    const std::size_t used = parser.write(text.data(), text.size(), error);
    if (error) {
      return fail(ErrorCode::kInvalidArgument, "the body is not valid JSON: {} at byte {}",
                  error.message(), used);
    }
    return parser.release();
  } catch (const std::exception& e) {  // strings or arrays beyond the library's own limits
    return fail(ErrorCode::kInvalidArgument, "the body is not acceptable JSON: {}", e.what());
  }
}

Result<json::object> parse_json_object(std::string_view text) {
  SPUD_TRY(json::value value, parse_json(text));
  if (!value.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "the body must be a JSON object");
  }
  return std::move(value.get_object());
}

}  // namespace spud::api
