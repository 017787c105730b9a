// SPDX-License-Identifier: Apache-2.0
// What the server says about itself: models, health, metrics.
#include <boost/json.hpp>

#include "gateway/internal/state.hpp"

namespace spud::gateway::internal {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {

json::object model_object(const ModelCard& card) {
  json::object certificate;
  certificate["label"] = card.label;
  certificate["sha256"] =
      card.certificate_digest.empty() ? json::value(nullptr) : json::value(card.certificate_digest);
  certificate["details"] = card.details;
  json::object out;
  out["id"] = card.id;
  out["object"] = "model";
  out["created"] = card.created;
  out["owned_by"] = "spud";
  out["max_model_len"] = card.context;  // the name other servers use
  out["certificate"] = std::move(certificate);
  return out;
}

}  // namespace

asio::awaitable<void> models_route(State& state, http::Exchange& exchange,
                                   const RequestContext& context) {
  json::array data;
  data.emplace_back(model_object(state.parts.host.card));
  json::object out;
  out["object"] = "list";
  out["data"] = std::move(data);
  co_await answer_json(state, exchange, context, json::serialize(out));
}

asio::awaitable<void> model_route(State& state, http::Exchange& exchange,
                                  const RequestContext& context) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string id = exchange.request().path.substr(kPrefix.size());
  if (id != state.parts.host.card.id) {
    co_await answer_error(state, exchange, context, api::model_not_found(id));
    co_return;
  }
  co_await answer_json(state, exchange, context,
                       json::serialize(model_object(state.parts.host.card)));
}

asio::awaitable<void> health_route(State& state, http::Exchange& exchange,
                                   const RequestContext& context) {
  co_await answer_json(state, exchange, context, R"({"status":"ok"})");
}

asio::awaitable<void> ready_route(State& state, http::Exchange& exchange,
                                  const RequestContext& context) {
  if (state.draining) {
    co_await answer_error(state, exchange, context,
                          api::error_for_status(503, "the server is stopping"));
    co_return;
  }
  co_await answer_json(state, exchange, context, R"({"status":"ready"})");
}

asio::awaitable<void> metrics_route(State& state, http::Exchange& exchange,
                                    const RequestContext& context) {
  state.parts.metrics->update(state.parts.host.engine->stats());
  http::Response response{.content_type = "text/plain; version=0.0.4; charset=utf-8"};
  add_common_headers(state, context, response.headers);
  response.body = state.parts.metrics->registry().exposition();
  const Result<void> sent = co_await exchange.respond(std::move(response));
  static_cast<void>(sent);
}

asio::awaitable<void> unsupported_route(State& state, http::Exchange& exchange,
                                        const RequestContext& context) {
  api::ApiError error = api::error_for_status(
      400, fmt::format("{} is not supported by this version.", exchange.request().path));
  error.code = "unsupported_endpoint";
  co_await answer_error(state, exchange, context, std::move(error));
}

}  // namespace spud::gateway::internal
