// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.hpp"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "gateway/internal/state.hpp"
#include "telemetry/log.hpp"

namespace spud::gateway {
namespace asio = boost::asio;

namespace {

using internal::Route;
using internal::State;

// A body of this size leaves its allocator arena with tens of megabytes of free small blocks, which
// glibc would keep; giving them back takes about a millisecond.
constexpr std::size_t kLargeBodyBytes = 1 << 20;

struct RouteEntry {
  std::string_view method;
  std::string_view path;  // a '/' at the end: any path below it
  std::string_view endpoint;
  Route route;
  bool open = false;  // needs no API key
};

// Order matters only where a path stands below another.
constexpr std::array kRoutes = {
    RouteEntry{"POST", "/v1/chat/completions", "chat", &internal::chat_route},
    RouteEntry{"POST", "/v1/completions", "completions", &internal::completion_route},
    RouteEntry{"GET", "/v1/models", "models", &internal::models_route},
    RouteEntry{"GET", "/v1/models/", "model", &internal::model_route},
    RouteEntry{"POST", "/tokenize", "tokenize", &internal::tokenize_route},
    RouteEntry{"POST", "/detokenize", "detokenize", &internal::detokenize_route},
    // Open, so that load balancers and Prometheus need no key; they show no content.
    RouteEntry{"GET", "/health", "health", &internal::health_route, true},
    RouteEntry{"GET", "/ready", "ready", &internal::ready_route, true},
    RouteEntry{"GET", "/metrics", "metrics", &internal::metrics_route, true},
    // Known to clients, not yet to us: a clear answer instead of "unknown path".
    RouteEntry{"POST", "/v1/embeddings", "embeddings", &internal::unsupported_route},
    RouteEntry{"POST", "/v1/responses", "responses", &internal::unsupported_route},
    RouteEntry{"POST", "/v1/moderations", "moderations", &internal::unsupported_route},
    RouteEntry{"POST", "/v1/audio/", "audio", &internal::unsupported_route},
    RouteEntry{"POST", "/v1/images/", "images", &internal::unsupported_route},
};

bool path_matches(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with('/')) return path.starts_with(pattern) && path.size() > pattern.size();
  return path == pattern;
}

bool method_matches(std::string_view expected, std::string_view method) {
  return method == expected || (expected == "GET" && method == "HEAD");
}

std::string allowed_methods(std::string_view path) {
  std::string allowed;
  for (const RouteEntry& entry : kRoutes) {
    if (!path_matches(entry.path, path)) continue;
    if (!allowed.empty()) allowed += ", ";
    allowed += entry.method;
    if (entry.method == "GET") allowed += ", HEAD";
  }
  return allowed;
}

bool is_printable_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

RequestContext make_context(State& state, const http::Request& request) {
  RequestContext context;
  context.started = state.parts.clock->now();
  context.request_id = fmt::format("req_{:016x}{:016x}", state.random(), state.random());
  context.endpoint = "other";
  const auto client_id = request.headers.find("X-Client-Request-Id");
  if (client_id && is_printable_id(*client_id)) context.client_request_id = *client_id;
  return context;
}

// Identity: sets the tenant, or says why the caller may not come in.
std::optional<api::ApiError> identify(const State& state, const http::Request& request,
                                      const RouteEntry& entry, RequestContext& context) {
  if (entry.open || !state.parts.keys.required()) return std::nullopt;
  const auto authorization = request.headers.find("Authorization");
  if (!authorization) return api::invalid_api_key(/*missing=*/true);
  const Tenant* tenant = state.parts.keys.find_tenant(*authorization);
  if (tenant == nullptr) return api::invalid_api_key(/*missing=*/false);
  context.tenant = *tenant;
  return std::nullopt;
}

// How long the client will wait, if it says so.
std::optional<api::ApiError> read_timeout(const http::Request& request, RequestContext& context) {
  constexpr std::int64_t kLongestMs = 86'400'000;
  const auto text = request.headers.find("X-Request-Timeout-Ms");
  if (!text) return std::nullopt;
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), ms);
  if (error == std::errc() && end == text->data() + text->size() && ms >= 1 && ms <= kLongestMs) {
    context.timeout = std::chrono::milliseconds(ms);
    return std::nullopt;
  }
  return api::error_for_status(
      400, fmt::format("The header X-Request-Timeout-Ms is '{}'; it must be a whole number of "
                       "milliseconds from 1 to {}.",
                       text->substr(0, 40), kLongestMs));
}

asio::awaitable<void> answer_options(State& state, http::Exchange& exchange,
                                     const RequestContext& context, std::string allowed) {
  http::Response response{.status = 204};
  internal::add_common_headers(state, context, response.headers);
  response.headers.add("Access-Control-Allow-Methods", allowed);
  response.headers.add("Access-Control-Allow-Headers", "Authorization, Content-Type");
  response.headers.add("Access-Control-Max-Age", "86400");
  const Result<void> sent = co_await exchange.respond(std::move(response));
  static_cast<void>(sent);  // the client is gone: nothing left to do
}

asio::awaitable<void> answer_no_route(State& state, http::Exchange& exchange,
                                      const RequestContext& context) {
  const http::Request& request = exchange.request();
  std::string allowed = allowed_methods(request.path);
  if (allowed.empty()) {
    api::ApiError error = api::error_for_status(
        404, fmt::format("Unknown request URL: {} {}. This server knows the OpenAI API under /v1.",
                         request.method, request.path.substr(0, 200)));
    error.code = "unknown_url";
    co_await internal::answer_error(state, exchange, context, std::move(error));
  } else if (request.method == "OPTIONS" && !state.options.cors_origin.empty()) {
    co_await answer_options(state, exchange, context, std::move(allowed));
  } else {
    api::ApiError error = api::error_for_status(
        405,
        fmt::format("{} does not take {}; it takes {}.", request.path, request.method, allowed));
    error.code = "method_not_allowed";
    http::Response response{.status = 405, .body = api::to_json(error)};
    internal::add_common_headers(state, context, response.headers);
    response.headers.add("Allow", allowed);
    const Result<void> sent = co_await exchange.respond(std::move(response));
    static_cast<void>(sent);
  }
}

asio::awaitable<void> dispatch(State& state, http::Exchange& exchange, RequestContext& context) {
  const http::Request& request = exchange.request();
  for (const RouteEntry& entry : kRoutes) {
    if (!path_matches(entry.path, request.path)) continue;
    if (!method_matches(entry.method, request.method)) continue;
    context.endpoint = entry.endpoint;
    std::optional<api::ApiError> refusal = identify(state, request, entry, context);
    if (!refusal) refusal = read_timeout(request, context);
    if (refusal) {
      co_await internal::answer_error(state, exchange, context, *std::move(refusal));
    } else {
      co_await entry.route(state, exchange, context);
    }
    co_return;
  }
  co_await answer_no_route(state, exchange, context);
}

asio::awaitable<void> handle(State& state, http::Exchange& exchange) {
  RequestContext context = make_context(state, exchange.request());
  const std::size_t body_bytes = exchange.request().body.size();
  co_await dispatch(state, exchange, context);
  const double seconds =
      std::chrono::duration<double>(state.parts.clock->now() - context.started).count();
  // 499: gone before anything could be sent, as other servers log it.
  const int status = exchange.started() ? exchange.status() : 499;
  state.parts.metrics->count_request(context.endpoint, status);
  if (body_bytes >= kLargeBodyBytes) malloc_trim(0);
  SPUD_LOG(debug, "request", {"request_id", context.request_id},
           {"client_request_id", context.client_request_id}, {"endpoint", context.endpoint},
           {"status", status}, {"seconds", seconds}, {"tenant", context.tenant.name},
           {"remote", exchange.request().remote_address});
}

}  // namespace

namespace internal {

void add_common_headers(const State& state, const RequestContext& context, http::Headers& headers) {
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(
      state.parts.clock->now() - context.started);
  headers.add("x-request-id", context.request_id);
  if (!context.client_request_id.empty()) {
    headers.add("x-client-request-id", context.client_request_id);
  }
  headers.add("openai-processing-ms", fmt::format("{}", elapsed.count()));
  headers.add("openai-version", "2020-10-01");
  if (!state.options.cors_origin.empty()) {
    headers.add("Access-Control-Allow-Origin", state.options.cors_origin);
  }
}

asio::awaitable<void> answer_json(State& state, http::Exchange& exchange,
                                  const RequestContext& context, std::string body) {
  http::Response response{.body = std::move(body)};
  add_common_headers(state, context, response.headers);
  const Result<void> sent = co_await exchange.respond(std::move(response));
  static_cast<void>(sent);  // the client is gone: nothing left to do
}

asio::awaitable<void> answer_error(State& state, http::Exchange& exchange,
                                   const RequestContext& context, api::ApiError error) {
  http::Response response{.status = error.status, .body = api::to_json(error)};
  add_common_headers(state, context, response.headers);
  if (error.retry_after_s > 0) {
    response.headers.add("Retry-After", fmt::format("{}", error.retry_after_s));
  }
  if (error.status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  const Result<void> sent = co_await exchange.respond(std::move(response));
  static_cast<void>(sent);
}

}  // namespace internal

Gateway::Gateway(GatewayOptions options, GatewayParts parts)
    : state_(std::make_unique<State>(
          State{.options = std::move(options), .parts = std::move(parts), .random = {}})) {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  state_->random.seed(seed);
}

Gateway::~Gateway() = default;

http::Handler Gateway::handler() {
  return [state = state_.get()](http::Exchange& exchange) { return handle(*state, exchange); };
}

void Gateway::start_draining() { state_->draining = true; }

std::string Gateway::server_error_body(int status, std::string_view message) {
  return api::to_json(api::error_for_status(status, std::string(message)));
}

}  // namespace spud::gateway
