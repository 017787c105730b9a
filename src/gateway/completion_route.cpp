// SPDX-License-Identifier: Apache-2.0
// /v1/completions: prompts as text or as token ids, several at once.
#include "gateway/internal/make_requests.hpp"
#include "gateway/internal/run_blocking.hpp"
#include "gateway/internal/run_generation.hpp"

namespace spud::gateway::internal {
namespace asio = boost::asio;

namespace {

std::unexpected<Error> wrong_prompt(std::string message) {
  return std::unexpected(
      Error(ErrorCode::kInvalidArgument, std::move(message)).with_param("prompt"));
}

Result<PreparedPrompt> prepare(const tokenizer::Tokenizer& tokenizer, api::Prompt prompt,
                               bool echo) {
  PreparedPrompt out;
  if (auto* text = std::get_if<std::string>(&prompt)) {
    // This endpoint is the raw one: whoever calls it writes the whole prompt, markers included (as
    // on other servers). Content of strangers belongs in chat messages, where none is recognised.
    SPUD_TRY(out.tokens, tokenizer.encode(*text, {.add_special = true, .parse_special = true}));
    if (out.tokens.empty()) return wrong_prompt("'prompt' is empty: it has no token");
    if (echo) out.echo_text = std::move(*text);
    return out;
  }
  out.tokens = std::get<std::vector<tokenizer::TokenId>>(std::move(prompt));
  if (out.tokens.empty()) return wrong_prompt("'prompt' is empty: it has no token");
  const auto vocabulary_size = static_cast<std::int64_t>(tokenizer.vocabulary_size());
  for (const tokenizer::TokenId token : out.tokens) {
    if (token >= vocabulary_size) {
      return wrong_prompt(fmt::format("token {} does not exist: this model has ids 0 to {}", token,
                                      vocabulary_size - 1));
    }
  }
  if (echo) {
    out.echo_text =
        api::replace_invalid_utf8(tokenizer.decode(out.tokens, /*render_special=*/false));
  }
  return out;
}

Result<std::vector<PreparedPrompt>> prepare_all(const tokenizer::Tokenizer& tokenizer,
                                                std::vector<api::Prompt> prompts, bool echo) {
  std::vector<PreparedPrompt> out;
  out.reserve(prompts.size());
  for (api::Prompt& prompt : prompts) {
    SPUD_TRY(PreparedPrompt prepared, prepare(tokenizer, std::move(prompt), echo));
    out.push_back(std::move(prepared));
  }
  return out;
}

}  // namespace

asio::awaitable<void> completion_route(State& state, http::Exchange& exchange,
                                       const RequestContext& context) {
  const std::string body = exchange.take_body();
  auto parse = [&body, &limits = state.options.limits] {
    return api::parse_completion_request(body, limits);
  };
  Result<api::CompletionRequest> request = co_await run_blocking<Result<api::CompletionRequest>>(
      *state.parts.blocking, body.size(), std::move(parse));
  if (!request) {
    co_await answer_error(state, exchange, context, api::to_api_error(request.error()));
    co_return;
  }
  std::optional<api::ApiError> refusal = refuse_early(state, request->params.model);
  if (refusal) {
    co_await answer_error(state, exchange, context, *std::move(refusal));
    co_return;
  }
  const tokenizer::Tokenizer& tokenizer = state.parts.host.engine->tokenizer();
  for (const api::Prompt& prompt : request->prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text == nullptr || refusal) continue;
    refusal = refuse_too_long(*state.parts.host.engine, text->size(), "prompt");
  }
  if (refusal) {
    co_await answer_error(state, exchange, context, *std::move(refusal));
    co_return;
  }
  const bool echo = request->echo;
  auto work = [&tokenizer, &request, echo] {
    return prepare_all(tokenizer, std::move(request->prompts), echo);
  };
  using Prompts = Result<std::vector<PreparedPrompt>>;
  Prompts prompts =
      co_await run_blocking<Prompts>(*state.parts.blocking, body.size(), std::move(work));
  if (!prompts) {
    co_await answer_error(state, exchange, context, api::to_api_error(prompts.error()));
    co_return;
  }
  Job job{.surface = api::Surface::kCompletion,
          .params = std::move(request->params),
          .prompts = *std::move(prompts),
          .prompt_param = "prompt",
          .echo = echo};
  co_await run_generation(state, exchange, context, std::move(job));
}

}  // namespace spud::gateway::internal
