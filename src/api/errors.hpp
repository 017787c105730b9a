// SPDX-License-Identifier: Apache-2.0
// OpenAI's error envelope, and the one place where error codes become HTTP statuses.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace spud::api {

// {"error": {"message", "type", "param", "code"}} with the status to send it under. An empty param
// or code is null in JSON.
struct ApiError {
  int status = 500;
  std::string message;
  std::string type;
  std::string param;
  std::string code;
  int retry_after_s = 0;  // > 0: the Retry-After header
};

// The mapping of base/error.hpp. 401 is not in it: that means bad credentials, nothing else.
int http_status(ErrorCode code) noexcept;
ApiError to_api_error(const Error& error);

// What the server itself answers by status alone (404 for an unknown path, 413, ...).
ApiError error_for_status(int status, std::string message);

// kinds that clients look for by `code`
ApiError model_not_found(std::string_view model);
ApiError context_length_exceeded(std::string message, std::string param);
ApiError invalid_api_key(bool missing);

std::string to_json(const ApiError& error);

}  // namespace spud::api
