// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <utility>

namespace spud {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kDataLoss:
      return "data_loss";
    case ErrorCode::kUnimplemented:
      return "unimplemented";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

Error Error::within(std::string_view place) && {
  message_.insert(0, std::string(place) + ": ");
  return std::move(*this);
}

Error Error::with_param(std::string param) && {
  param_ = std::move(param);
  return std::move(*this);
}

}  // namespace spud
