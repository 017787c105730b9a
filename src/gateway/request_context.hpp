// SPDX-License-Identifier: Apache-2.0
// What is known about a request besides its body; lives as long as its handler.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "concurrency/clock.hpp"
#include "gateway/api_keys.hpp"
#include "http/message.hpp"

namespace spud::gateway {

struct RequestContext {
  std::string request_id;         // ours, unique
  std::string client_request_id;  // X-Client-Request-Id, if it was sent and is printable
  std::string_view endpoint;      // metrics label, from the table of routes
  Tenant tenant;                  // of the API key; its name is "" without keys
  std::optional<std::chrono::nanoseconds> timeout;  // X-Request-Timeout-Ms
  concurrency::SteadyTime started;
};

}  // namespace spud::gateway
