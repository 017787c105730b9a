// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 client: one request, one connection, the answer's body handed over piece by
// piece as it arrives (so that a stream of events can be read while it is written). Every wait has
// a limit. No TLS, no redirects, no pooling: it serves `spud chat` and tests.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "http/message.hpp"

namespace spud::http {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds head_timeout{120'000};  // until the answer's headers
  std::chrono::milliseconds idle_timeout{60'000};   // between pieces of the body
  std::size_t max_body_bytes = 64u << 20;
};

struct ClientRequest {
  std::string method = "GET";
  Url url;
  std::string path;  // appended to url.path
  Headers headers;
  std::string body;  // sent as application/json when not empty
};

struct ResponseHead {
  int status = 0;
  Headers headers;
};

// Return false to stop reading; the connection is then closed.
using OnHead = std::function<bool(const ResponseHead&)>;
using OnBody = std::function<bool(std::string_view)>;

// kUnavailable: no connection; kDeadlineExceeded: a limit passed; kDataLoss: the answer broke off
// or is not HTTP; kResourceExhausted: body too long; kCancelled: the coroutine was cancelled.
[[nodiscard]] boost::asio::awaitable<Result<ResponseHead>> fetch(
    boost::asio::any_io_executor executor, ClientRequest request, ClientOptions options,
    OnHead on_head, OnBody on_body);

}  // namespace spud::http
