// SPDX-License-Identifier: Apache-2.0
// The one door: takes an HTTP request, finds out who sent it, checks it, has it answered by the
// route that its path names, and counts it. Routes are a table in gateway.cpp; each is a coroutine
// on the server's thread. Work that grows with a request's size (parsing, templates, tokenising)
// goes to the `blocking` pool.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "api/requests.hpp"
#include "concurrency/clock.hpp"
#include "gateway/api_keys.hpp"
#include "gateway/metrics.hpp"
#include "gateway/model_host.hpp"
#include "gateway/request_log.hpp"
#include "http/exchange.hpp"

namespace spud::gateway {

struct GatewayOptions {
  api::RequestLimits limits;
  // Of one generation request, queueing included; 0 = none.
  std::chrono::seconds request_timeout{600};
  // A stream that has nothing to say for so long sends a comment, so that proxies keep it open.
  std::chrono::milliseconds heartbeat{15'000};
  // Generated and not yet taken by the client, per request.
  std::size_t max_buffered_bytes = 1u << 20;
  std::string cors_origin;  // "" = no CORS headers; "*" or one origin
};

// What a gateway works with. References outlive it.
struct GatewayParts {
  ModelHost host;
  ApiKeys keys;
  ServerMetrics* metrics = nullptr;
  const concurrency::Clock* clock = nullptr;
  boost::asio::thread_pool* blocking = nullptr;
  RequestLog* request_log = nullptr;  // may be null: nothing is logged
};

// Server thread only.
class Gateway {
 public:
  Gateway(GatewayOptions options, GatewayParts parts);
  ~Gateway();

  // For http::Server; the gateway must outlive it.
  http::Handler handler();
  // Generation requests are answered 503 from now on; /ready says so. Running ones go on.
  void start_draining();
  // The JSON body for errors that the server answers itself.
  static std::string server_error_body(int status, std::string_view message);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace spud::gateway
