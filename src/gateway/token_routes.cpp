// SPDX-License-Identifier: Apache-2.0
// /tokenize and /detokenize, in llama-server's shapes.
#include <boost/json.hpp>

#include "api/responses.hpp"
#include "gateway/internal/run_blocking.hpp"
#include "gateway/internal/state.hpp"

namespace spud::gateway::internal {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {

// A longer text, with one long word in it, would keep one of the few threads that all prompts are
// made into tokens on for many seconds.
constexpr std::size_t kMaxTextBytes = 1 << 20;

// A piece that is no valid UTF-8 by itself is an array of bytes.
json::value piece_value(std::string_view bytes) {
  if (api::replace_invalid_utf8(bytes) == bytes) return json::value(bytes);
  json::array out;
  for (const char c : bytes) out.emplace_back(static_cast<unsigned char>(c));
  return out;
}

Result<std::string> tokenize(const tokenizer::Tokenizer& tokenizer, std::string_view body) {
  SPUD_TRY(const api::TokenizeRequest request, api::parse_tokenize_request(body));
  if (request.content.size() > kMaxTextBytes) {
    return std::unexpected(Error(ErrorCode::kInvalidArgument,
                                 fmt::format("'content' has {} bytes, but /tokenize takes at most "
                                             "{}; send it in parts",
                                             request.content.size(), kMaxTextBytes))
                               .with_param("content"));
  }
  SPUD_TRY(const auto tokens,
           tokenizer.encode(request.content, {.add_special = request.add_special,
                                              .parse_special = request.parse_special}));
  json::array list;
  list.reserve(tokens.size());
  for (const tokenizer::TokenId token : tokens) {
    if (!request.with_pieces) {
      list.emplace_back(token);
      continue;
    }
    json::object entry;
    entry["id"] = token;
    entry["piece"] = piece_value(tokenizer.token_bytes(token, /*render_special=*/true));
    list.emplace_back(std::move(entry));
  }
  json::object out;
  out["tokens"] = std::move(list);
  return json::serialize(out);
}

Result<std::string> detokenize(const tokenizer::Tokenizer& tokenizer, std::string_view body) {
  SPUD_TRY(const auto tokens, api::parse_detokenize_request(body));
  const auto vocabulary_size = static_cast<std::int64_t>(tokenizer.vocabulary_size());
  for (const tokenizer::TokenId token : tokens) {
    if (token >= vocabulary_size) {
      return std::unexpected(
          Error(ErrorCode::kInvalidArgument,
                fmt::format("token {} does not exist: this model has ids 0 to {}", token,
                            vocabulary_size - 1))
              .with_param("tokens"));
    }
  }
  json::object out;
  out["content"] = api::replace_invalid_utf8(tokenizer.decode(tokens, /*render_special=*/true));
  return json::serialize(out);
}

using Convert = Result<std::string> (*)(const tokenizer::Tokenizer&, std::string_view);

asio::awaitable<void> convert_route(State& state, http::Exchange& exchange,
                                    const RequestContext& context, Convert convert) {
  const std::string body = exchange.take_body();
  const tokenizer::Tokenizer& tokenizer = state.parts.host.engine->tokenizer();
  auto work = [&tokenizer, &body, convert] { return convert(tokenizer, body); };
  Result<std::string> answer = co_await run_blocking<Result<std::string>>(
      *state.parts.blocking, body.size(), std::move(work));
  if (answer) {
    co_await answer_json(state, exchange, context, *std::move(answer));
  } else {
    co_await answer_error(state, exchange, context, api::to_api_error(answer.error()));
  }
}

}  // namespace

asio::awaitable<void> tokenize_route(State& state, http::Exchange& exchange,
                                     const RequestContext& context) {
  co_await convert_route(state, exchange, context, &tokenize);
}

asio::awaitable<void> detokenize_route(State& state, http::Exchange& exchange,
                                       const RequestContext& context) {
  co_await convert_route(state, exchange, context, &detokenize);
}

}  // namespace spud::gateway::internal
