// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/chat_session.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/json.hpp>
#include <csignal>

#include "http/client.hpp"
#include "http/sse.hpp"
#include "http/task_group.hpp"

namespace spud::app {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {

constexpr std::size_t kMaxErrorBytes = 64 << 10;

http::Headers make_headers(const std::string& api_key) {
  http::Headers headers;
  if (!api_key.empty()) headers.add("Authorization", "Bearer " + api_key);
  return headers;
}

// The server's own sentence, if the body is an error envelope.
Error to_error(int status, const std::string& body) {
  json::error_code ignored;
  const json::value value = json::parse(body, ignored);
  const json::object* object = value.if_object();
  const json::value* error = object == nullptr ? nullptr : object->if_contains("error");
  const json::value* message =
      error != nullptr && error->is_object() ? error->get_object().if_contains("message") : nullptr;
  if (message != nullptr && message->is_string()) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the server says: {}", std::string_view(message->get_string())));
  }
  return Error(ErrorCode::kUnavailable, fmt::format("the server answered with status {}", status));
}

// What one request's callbacks fill in.
struct Receiving {
  const std::function<void(std::string_view)>* on_text = nullptr;
  int status = 0;
  std::string error_body;
  http::SseParser parser = http::SseParser();
  ChatReply reply;
  std::optional<Error> error;

  bool take_body(std::string_view bytes);
  void take_event(const std::string& data);
  void take_choice(const json::object& choice);
};

bool Receiving::take_body(std::string_view bytes) {
  if (status != 200) {
    error_body += bytes.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, error_body.size()));
    return true;
  }
  const auto parsed =
      parser.push(bytes, [this](const http::SseEvent& event) { take_event(event.data); });
  if (!parsed) error = parsed.error();
  return !error.has_value();
}

void Receiving::take_event(const std::string& data) {
  if (data == "[DONE]" || error) return;
  json::error_code failed;
  const json::value value = json::parse(data, failed);
  const json::object* chunk = value.if_object();
  if (failed || chunk == nullptr) {
    error = Error(ErrorCode::kDataLoss, "the server sent an event that is not JSON");
    return;
  }
  if (chunk->contains("error")) {
    error = to_error(200, data);
    return;
  }
  const json::value* usage = chunk->if_contains("usage");
  if (usage != nullptr && usage->is_object()) {
    const auto count = [&usage](std::string_view name) {
      const json::value* number = usage->get_object().if_contains(name);
      return number != nullptr && number->is_int64() ? number->get_int64() : 0;
    };
    reply.prompt_tokens = count("prompt_tokens");
    reply.completion_tokens = count("completion_tokens");
  }
  const json::value* choices = chunk->if_contains("choices");
  if (choices == nullptr || !choices->is_array()) return;
  for (const json::value& choice : choices->get_array()) {
    if (choice.is_object()) take_choice(choice.get_object());
  }
}

void Receiving::take_choice(const json::object& choice) {
  const json::value* delta = choice.if_contains("delta");
  const json::value* content =
      delta != nullptr && delta->is_object() ? delta->get_object().if_contains("content") : nullptr;
  if (content != nullptr && content->is_string()) {
    reply.text += content->get_string();
    (*on_text)(content->get_string());
  }
  const json::value* reason = choice.if_contains("finish_reason");
  if (reason != nullptr && reason->is_string()) reply.finish_reason = reason->get_string();
}

using Fetched = std::optional<Result<http::ResponseHead>>;

asio::awaitable<void> fetch_into(asio::any_io_executor executor, http::ClientRequest request,
                                 Receiving* receiving, Fetched* fetched) {
  const http::ClientOptions options{.head_timeout = std::chrono::minutes(10)};
  auto on_head = [receiving](const http::ResponseHead& head) {
    receiving->status = head.status;
    return true;
  };
  auto on_body = [receiving](std::string_view bytes) { return receiving->take_body(bytes); };
  fetched->emplace(co_await http::fetch(executor, std::move(request), options, on_head, on_body));
}

// Runs the request to its end or to Ctrl-C.
Result<void> run_request(http::ClientRequest request, Receiving& receiving) {
  asio::io_context io;
  http::TaskGroup group(io.get_executor());
  Fetched fetched;
  asio::signal_set signals(io, SIGINT);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    receiving.reply.interrupted = true;
    group.cancel();
  });
  group.spawn(fetch_into(io.get_executor(), std::move(request), &receiving, &fetched));
  while (group.size() > 0) io.run_one();
  boost::system::error_code ignored;
  signals.cancel(ignored);
  io.run();
  if (receiving.reply.interrupted) return {};
  if (receiving.error) return std::unexpected(*receiving.error);
  if (!fetched) return fail(ErrorCode::kInternal, "the request ended without a result");
  if (!*fetched) return std::unexpected(std::move(*fetched).error());
  if (receiving.status != 200) {
    return std::unexpected(to_error(receiving.status, receiving.error_body));
  }
  return {};
}

}  // namespace

ChatSession::ChatSession(ChatOptions options) : options_(std::move(options)) { reset(); }

void ChatSession::reset() {
  messages_.clear();
  if (options_.system.empty()) return;
  messages_.push_back(json::object{{"role", "system"}, {"content", options_.system}});
}

json::object ChatSession::make_request() const {
  json::object body;
  body["model"] = options_.model;
  body["messages"] = messages_;
  body["stream"] = true;
  body["stream_options"] = json::object{{"include_usage", true}};
  if (options_.max_tokens > 0) body["max_tokens"] = options_.max_tokens;
  if (options_.temperature >= 0) body["temperature"] = options_.temperature;
  if (options_.seed >= 0) body["seed"] = options_.seed;
  return body;
}

Result<ChatReply> ChatSession::ask(std::string_view text,
                                   const std::function<void(std::string_view)>& on_text) {
  messages_.push_back(json::object{{"role", "user"}, {"content", text}});
  Receiving receiving{.on_text = &on_text};
  http::ClientRequest request{.method = "POST",
                              .url = options_.url,
                              .path = "/v1/chat/completions",
                              .headers = make_headers(options_.api_key),
                              .body = json::serialize(make_request())};
  const Result<void> done = run_request(std::move(request), receiving);
  if (!done) {
    messages_.pop_back();  // as if it had not been asked
    return std::unexpected(done.error());
  }
  messages_.push_back(json::object{{"role", "assistant"}, {"content", receiving.reply.text}});
  return std::move(receiving.reply);
}

Result<std::string> find_served_model(const http::Url& url, const std::string& api_key) {
  asio::io_context io;
  http::TaskGroup group(io.get_executor());
  Fetched fetched;
  http::ClientRequest request{
      .url = url, .path = "/v1/models", .headers = make_headers(api_key), .body = ""};
  std::string body;
  struct Collect {
    static asio::awaitable<void> run(asio::any_io_executor executor, http::ClientRequest asked,
                                     std::string* out, Fetched* result) {
      auto on_body = [out](std::string_view bytes) {
        *out += bytes;
        return out->size() < (std::size_t{1} << 20);
      };
      const http::ClientOptions options{.head_timeout = std::chrono::seconds(10)};
      result->emplace(co_await http::fetch(executor, std::move(asked), options, nullptr, on_body));
    }
  };
  group.spawn(Collect::run(io.get_executor(), std::move(request), &body, &fetched));
  io.run();
  if (!fetched) return fail(ErrorCode::kInternal, "the request ended without a result");
  if (!*fetched) return std::unexpected(std::move(*fetched).error());
  if ((*fetched)->status != 200) return std::unexpected(to_error((*fetched)->status, body));
  json::error_code failed;
  const json::value value = json::parse(body, failed);
  if (!failed) {
    const json::value* id = value.find_pointer("/data/0/id", failed);
    if (id != nullptr && id->is_string()) return std::string(id->get_string());
  }
  return fail(ErrorCode::kDataLoss,
              "http://{}:{}/v1/models names no model: is that an "
              "OpenAI-compatible server?",
              url.host, url.port);
}

}  // namespace spud::app
