// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>

#include "api/field_reader.hpp"
#include "api/requests.hpp"

namespace spud::api {
namespace json = boost::json;

namespace {

std::unexpected<Error> wrong(std::string param, std::string message) {
  return std::unexpected(
      Error(ErrorCode::kInvalidArgument, std::move(message)).with_param(std::move(param)));
}

// One text of a content array.
Result<std::string> read_part(const json::value& part, const std::string& param) {
  const json::object* object = part.if_object();
  if (object == nullptr) {
    return wrong(param, fmt::format("'{}' must be an object with a 'type'", param));
  }
  const json::value* type = object->if_contains("type");
  const json::string* type_name = type == nullptr ? nullptr : type->if_string();
  if (type_name == nullptr) {
    return wrong(param + ".type", fmt::format("'{}.type' must be a string", param));
  }
  if (*type_name != "text" && *type_name != "refusal") {
    return wrong(param + ".type",
                 fmt::format("content of type {} is not supported by this version: only 'text' is",
                             shown(*type)));
  }
  const json::value* text = object->if_contains(*type_name);
  if (text == nullptr || !text->is_string()) {
    return wrong(fmt::format("{}.{}", param, std::string_view(*type_name)),
                 fmt::format("'{}.{}' must be a string", param, std::string_view(*type_name)));
  }
  return std::string(text->get_string());
}

Result<std::string> read_content(const json::object& message, bool may_be_empty,
                                 const std::string& param) {
  const json::value* content = message.if_contains("content");
  if (content == nullptr || content->is_null()) {
    if (may_be_empty) return std::string();
    return wrong(param, fmt::format("'{}' is missing", param));
  }
  if (content->is_string()) return std::string(content->get_string());
  const json::array* parts = content->if_array();
  if (parts == nullptr) {
    return wrong(param, fmt::format("'{}' must be a string or an array of parts, not {}", param,
                                    shown(*content)));
  }
  std::string joined;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    SPUD_TRY(const std::string text, read_part((*parts)[i], fmt::format("{}[{}]", param, i)));
    if (i > 0) joined += '\n';
    joined += text;
  }
  return joined;
}

Result<json::object> read_message(const json::value& value, const std::string& param) {
  const json::object* message = value.if_object();
  if (message == nullptr) return wrong(param, fmt::format("'{}' must be an object", param));
  const json::value* role_value = message->if_contains("role");
  if (role_value == nullptr || !role_value->is_string()) {
    return wrong(param + ".role", fmt::format("'{}.role' must be a string", param));
  }
  std::string role(role_value->get_string());
  if (role == "developer") role = "system";  // the newer name for the same thing
  if (role == "tool" || role == "function") {
    return wrong(param + ".role",
                 fmt::format("role '{}' is not supported by this version: tools come later", role));
  }
  if (role != "system" && role != "user" && role != "assistant") {
    return wrong(param + ".role",
                 fmt::format("'{}.role' must be system, developer, user or assistant, not {}",
                             param, shown(*role_value)));
  }
  const json::value* calls = message->if_contains("tool_calls");
  if (calls != nullptr && calls->is_array() && !calls->get_array().empty()) {
    return wrong(param + ".tool_calls", "tool calls are not supported by this version");
  }
  SPUD_TRY(std::string content, read_content(*message, role == "assistant", param + ".content"));
  json::object out{{"role", role}, {"content", std::move(content)}};
  const json::value* name = message->if_contains("name");
  if (name != nullptr && !name->is_null()) {
    if (!name->is_string()) {
      return wrong(param + ".name", fmt::format("'{}.name' must be a string", param));
    }
    out["name"] = *name;
  }
  return out;
}

}  // namespace

Result<json::array> normalize_messages(const json::value& messages) {
  const json::array* array = messages.if_array();
  if (array == nullptr) return wrong("messages", "'messages' must be an array");
  if (array->empty()) return wrong("messages", "'messages' must hold at least one message");
  json::array out;
  out.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) {
    SPUD_TRY(json::object message, read_message((*array)[i], fmt::format("messages[{}]", i)));
    out.emplace_back(std::move(message));
  }
  return out;
}

}  // namespace spud::api
