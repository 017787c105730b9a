// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/load_target.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>

#include "http/client.hpp"
#include "http/task_group.hpp"
#include "spud/commands/chat_session.hpp"

namespace spud::app {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {

constexpr std::size_t kPoolWords = 400;
constexpr std::size_t kMaxAnswerBytes = 1 << 20;

struct Answer {
  int status = 0;
  std::string body;
};

asio::awaitable<void> fetch_into(asio::any_io_executor executor, http::ClientRequest request,
                                 std::string* body,
                                 std::optional<Result<http::ResponseHead>>* out) {
  auto on_body = [body](std::string_view bytes) {
    *body += bytes;
    return body->size() < kMaxAnswerBytes;
  };
  const http::ClientOptions options{.head_timeout = std::chrono::seconds(30)};
  out->emplace(co_await http::fetch(executor, std::move(request), options, nullptr, on_body));
}

Result<Answer> post(const http::Url& url, const std::string& path, const std::string& api_key,
                    std::string body) {
  http::ClientRequest request{
      .method = "POST", .url = url, .path = path, .headers = {}, .body = std::move(body)};
  if (!api_key.empty()) request.headers.add("Authorization", "Bearer " + api_key);
  asio::io_context io;
  http::TaskGroup group(io.get_executor());
  Answer answer;
  std::optional<Result<http::ResponseHead>> fetched;
  group.spawn(fetch_into(io.get_executor(), std::move(request), &answer.body, &fetched));
  io.run();
  if (!fetched) return fail(ErrorCode::kInternal, "the request ended without a result");
  if (!*fetched) return std::unexpected(std::move(*fetched).error());
  answer.status = (*fetched)->status;
  return answer;
}

// Ids of the sample text; empty when the server has no such endpoint.
Result<std::vector<std::int32_t>> fetch_token_pool(const http::Url& url, const std::string& api_key,
                                                   const std::string& model) {
  const json::object body{
      {"model", model}, {"content", loadgen::sample_text(kPoolWords)}, {"add_special", false}};
  SPUD_TRY(const Answer answer, post(url, "/tokenize", api_key, json::serialize(body)));
  std::vector<std::int32_t> pool;
  if (answer.status != 200) return pool;
  json::error_code failed;
  const json::value value = json::parse(answer.body, failed);
  const json::value* tokens = failed ? nullptr : value.find_pointer("/tokens", failed);
  if (tokens == nullptr || !tokens->is_array()) return pool;
  for (const json::value& token : tokens->get_array()) {
    if (token.is_int64()) pool.push_back(static_cast<std::int32_t>(token.get_int64()));
  }
  return pool;
}

}  // namespace

Result<loadgen::PromptOptions> prepare_prompts(const http::Url& url, const std::string& api_key,
                                               const std::string& model, const std::string& form) {
  loadgen::PromptOptions options{.form = loadgen::PromptForm::kText, .model = model};
  if (model.empty()) {
    SPUD_TRY(options.model, find_served_model(url, api_key));
  }
  if (form == "chat") {
    options.form = loadgen::PromptForm::kChat;
    return options;
  }
  if (form == "text") return options;
  SPUD_TRY(options.token_pool, fetch_token_pool(url, api_key, options.model));
  if (!options.token_pool.empty()) {
    options.form = loadgen::PromptForm::kTokens;
  } else if (form == "tokens") {
    return fail(ErrorCode::kUnavailable,
                "the server has no /tokenize, so prompts of exact length are not possible; use "
                "--form text or chat");
  }
  return options;
}

}  // namespace spud::app
