// SPDX-License-Identifier: Apache-2.0
#include "api/errors.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace spud::api {
namespace {

namespace json = boost::json;

// An overloaded server is worth another try soon; the official client honours this header.
constexpr int kRetryAfterSeconds = 1;

std::string type_for(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

std::string code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "";
    case ErrorCode::kResourceExhausted:
      return "queue_full";
    case ErrorCode::kUnavailable:
      return "unavailable";
    default:
      return std::string(to_string(code));
  }
}

json::value text_or_null(const std::string& text) {
  if (text.empty()) return nullptr;
  return json::value(text);
}

}  // namespace

int http_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kResourceExhausted:
      return 429;
    case ErrorCode::kCancelled:
      return 499;
    case ErrorCode::kUnimplemented:
      return 501;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kDeadlineExceeded:
      return 504;
    case ErrorCode::kDataLoss:
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

ApiError to_api_error(const Error& error) {
  const int status = http_status(error.code());
  return ApiError{.status = status,
                  .message = error.message(),
                  .type = type_for(status),
                  .param = error.param(),
                  .code = code_for(error.code()),
                  .retry_after_s = status == 429 || status == 503 ? kRetryAfterSeconds : 0};
}

ApiError error_for_status(int status, std::string message) {
  return ApiError{.status = status,
                  .message = std::move(message),
                  .type = type_for(status),
                  .retry_after_s = status == 429 || status == 503 ? kRetryAfterSeconds : 0};
}

ApiError model_not_found(std::string_view model) {
  return ApiError{.status = 404,
                  .message = fmt::format("The model '{}' does not exist here; GET /v1/models lists "
                                         "what is served.",
                                         model.substr(0, 200)),
                  .type = type_for(404),
                  .param = "model",
                  .code = "model_not_found"};
}

ApiError context_length_exceeded(std::string message, std::string param) {
  return ApiError{.status = 400,
                  .message = std::move(message),
                  .type = type_for(400),
                  .param = std::move(param),
                  .code = "context_length_exceeded"};
}

ApiError invalid_api_key(bool missing) {
  return ApiError{.status = 401,
                  .message = missing
                                 ? "No API key was given: send it as 'Authorization: Bearer KEY'."
                                 : "The API key is not known here.",
                  .type = type_for(401),
                  .code = "invalid_api_key"};
}

std::string to_json(const ApiError& error) {
  json::object body;
  body["message"] = error.message;
  body["type"] = error.type;
  body["param"] = text_or_null(error.param);
  body["code"] = text_or_null(error.code);
  return json::serialize(json::object{{"error", std::move(body)}});
}

}  // namespace spud::api
