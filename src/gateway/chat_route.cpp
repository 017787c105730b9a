// SPDX-License-Identifier: Apache-2.0
// /v1/chat/completions: messages through the model's template to a prompt.
#include <boost/json.hpp>

#include "gateway/internal/make_requests.hpp"
#include "gateway/internal/run_blocking.hpp"
#include "gateway/internal/run_generation.hpp"
#include "tokenizer/prompt.hpp"

namespace spud::gateway::internal {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {

std::string special_text(const tokenizer::Tokenizer& tokenizer,
                         std::optional<tokenizer::TokenId> token) {
  if (!token) return "";
  return std::string(tokenizer.token_bytes(*token, /*render_special=*/true));
}

using Tokens = std::expected<std::vector<tokenizer::TokenId>, api::ApiError>;

// 501: the template needs what we do not have; the rest are the client's mistakes.
Tokens make_prompt(const ModelHost& host, api::ChatRequest request, std::int64_t now_unix_seconds) {
  const tokenizer::Tokenizer& tokenizer = host.engine->tokenizer();
  tokenizer::ChatTemplateInput input;
  input.messages = std::move(request.messages);
  input.bos_token = special_text(tokenizer, tokenizer.bos());
  input.eos_token = special_text(tokenizer, tokenizer.eos());
  input.extra = std::move(request.template_arguments);
  input.now_unix_seconds = now_unix_seconds;
  auto pieces = host.chat_template->render(input);
  if (!pieces) {
    const bool ours = pieces.error().code() == ErrorCode::kUnimplemented;
    return std::unexpected(
        api::to_api_error(Error(ours ? ErrorCode::kUnimplemented : ErrorCode::kInvalidArgument,
                                fmt::format("the chat template: {}", pieces.error().message()))
                              .with_param("messages")));
  }
  std::size_t bytes = 0;
  for (const tokenizer::PromptPiece& piece : *pieces) bytes += piece.text.size();
  if (auto refusal = refuse_too_long(*host.engine, bytes, "messages")) {
    return std::unexpected(*std::move(refusal));
  }
  auto tokens = tokenizer::encode_prompt(tokenizer, *pieces);
  if (!tokens) return std::unexpected(api::to_api_error(tokens.error()));
  return *std::move(tokens);
}

}  // namespace

asio::awaitable<void> chat_route(State& state, http::Exchange& exchange,
                                 const RequestContext& context) {
  const std::string body = exchange.take_body();
  const ModelHost& host = state.parts.host;
  auto parse = [&body, &limits = state.options.limits] {
    return api::parse_chat_request(body, limits);
  };
  Result<api::ChatRequest> request = co_await run_blocking<Result<api::ChatRequest>>(
      *state.parts.blocking, body.size(), std::move(parse));
  if (!request) {
    co_await answer_error(state, exchange, context, api::to_api_error(request.error()));
    co_return;
  }
  std::optional<api::ApiError> refusal = refuse_early(state, request->params.model);
  if (!refusal && host.chat_template == nullptr) {
    refusal = api::error_for_status(
        400, fmt::format("This model cannot chat: {}; use /v1/completions.", host.no_chat_reason));
    refusal->code = "no_chat_template";
  }
  if (refusal) {
    co_await answer_error(state, exchange, context, *std::move(refusal));
    co_return;
  }
  Job job{.surface = api::Surface::kChat, .params = request->params, .prompt_param = "messages"};
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      state.parts.clock->system_now().time_since_epoch());
  auto render = [&host, &request, now] {
    return make_prompt(host, std::move(*request), now.count());
  };
  Tokens tokens =
      co_await run_blocking<Tokens>(*state.parts.blocking, body.size(), std::move(render));
  if (!tokens) {
    co_await answer_error(state, exchange, context, std::move(tokens.error()));
    co_return;
  }
  job.prompts.push_back({.tokens = *std::move(tokens)});
  co_await run_generation(state, exchange, context, std::move(job));
}

}  // namespace spud::gateway::internal
