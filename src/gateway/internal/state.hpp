// SPDX-License-Identifier: Apache-2.0
// What the routes share, and the helpers they all use. Server thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <random>
#include <string>

#include "api/errors.hpp"
#include "gateway/gateway.hpp"
#include "gateway/request_context.hpp"

namespace spud::gateway {

struct Gateway::State {
  GatewayOptions options;
  GatewayParts parts;
  std::mt19937_64 random;  // request ids, and seeds for requests that bring none
  bool draining = false;
};

namespace internal {

using State = Gateway::State;
using Route = boost::asio::awaitable<void> (*)(State&, http::Exchange&, const RequestContext&);

// Routes; each answers exactly once.
boost::asio::awaitable<void> chat_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> completion_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> tokenize_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> detokenize_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> models_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> model_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> health_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> ready_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> metrics_route(State&, http::Exchange&, const RequestContext&);
boost::asio::awaitable<void> unsupported_route(State&, http::Exchange&, const RequestContext&);

// x-request-id, openai-version, openai-processing-ms, CORS.
void add_common_headers(const State& state, const RequestContext& context, http::Headers& headers);
boost::asio::awaitable<void> answer_json(State& state, http::Exchange& exchange,
                                         const RequestContext& context, std::string body);
boost::asio::awaitable<void> answer_error(State& state, http::Exchange& exchange,
                                          const RequestContext& context, api::ApiError error);

}  // namespace internal
}  // namespace spud::gateway
