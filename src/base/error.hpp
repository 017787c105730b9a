// SPDX-License-Identifier: Apache-2.0
// What went wrong, for things that are expected to go wrong: bad files, bad requests, overload,
// timeouts. An Error is a value: it says which kind (for programs), one sentence (for a person: the
// value that was wrong, the limit, what to do) and where it passed on its way up.
// Bugs are not Errors: see check.hpp.
#pragma once

#include <string>
#include <string_view>

namespace spud {

enum class ErrorCode {
  kInvalidArgument,    // The input is wrong and will be wrong again. HTTP 400.
  kNotFound,           // A named thing does not exist. HTTP 404.
  kUnavailable,        // Not now: shutting down, not loaded yet. HTTP 503.
  kResourceExhausted,  // A limit was reached: queue, pages, rate. HTTP 429.
  kDeadlineExceeded,   // Took longer than allowed. HTTP 504.
  kCancelled,          // The caller went away or asked to stop. HTTP 499.
  kDataLoss,           // Stored bytes are damaged or inconsistent. HTTP 500.
  kUnimplemented,      // Understood, but this build does not do it. HTTP 501.
  kInternal,           // Our fault, but survivable. HTTP 500.
};

// "invalid_argument", "not_found", ...
std::string_view to_string(ErrorCode code) noexcept;

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const noexcept { return code_; }
  // The sentence, with every place it passed in front: "load model: tensor 'x': ...".
  const std::string& message() const noexcept { return message_; }
  // The request field at fault ("max_tokens"), empty when there is none.
  const std::string& param() const noexcept { return param_; }

  // Adds where the error passed. Use on the way up: `return std::move(e).within("load model")`.
  Error within(std::string_view place) &&;
  Error with_param(std::string param) &&;

 private:
  ErrorCode code_;
  std::string message_;
  std::string param_;
};

}  // namespace spud
