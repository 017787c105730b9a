// SPDX-License-Identifier: Apache-2.0
// What is known about a request besides its body; lives as long as its handler.
#pragma once

#include <string>
#include <string_view>

#include "concurrency/clock.hpp"
#include "http/message.hpp"

namespace spud::gateway {

struct RequestContext {
  std::string request_id;         // ours, unique
  std::string client_request_id;  // X-Client-Request-Id, if it was sent and is printable
  std::string_view endpoint;      // metrics label, from the table of routes
  std::string tenant;             // the API key's name, "" without keys
  concurrency::SteadyTime started;
};

}  // namespace spud::gateway
