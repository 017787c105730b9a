// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/chat.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "spud/commands/chat_session.hpp"
#include "spud/commands/model_server.hpp"
#include "telemetry/log.hpp"

namespace spud::app {
namespace {

struct Arguments {
  std::string target = "http://127.0.0.1:8080";
  std::string once;
  ChatOptions chat;
};

// A model file served in this process, on a port that nobody else knows.
class LocalServer {
 public:
  static Result<std::unique_ptr<LocalServer>> start(const std::string& model,
                                                    const GlobalOptions& globals) {
    ServeOptions options;
    options.model = model;
    options.port = 0;
    options.max_sequences = 1;
    options.drain_s = 2;  // the only client is this process, and it has left by then
    SPUD_TRY(auto server, ModelServer::open(options, globals));
    return std::unique_ptr<LocalServer>(new LocalServer(std::move(server)));
  }
  ~LocalServer() {
    server_->stop();
    thread_.join();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", server_->port()); }
  const std::string& summary() const { return server_->summary(); }

 private:
  explicit LocalServer(std::unique_ptr<ModelServer> server)
      : server_(std::move(server)), thread_([this] { server_->run(/*handle_signals=*/false); }) {}

  std::unique_ptr<ModelServer> server_;
  std::thread thread_;  // last: runs the server
};

void print_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Result<int> ask_once(ChatSession& session, const std::string& text, bool json) {
  const auto show = [json](std::string_view piece) {
    if (!json) print_text(piece);
  };
  SPUD_TRY(const ChatReply reply, session.ask(text, show));
  if (!json) {
    print_text("\n");
  } else {
    const boost::json::object out{{"text", reply.text},
                                  {"finish_reason", reply.finish_reason},
                                  {"prompt_tokens", reply.prompt_tokens},
                                  {"completion_tokens", reply.completion_tokens}};
    print_text(boost::json::serialize(out) + "\n");
  }
  return reply.interrupted ? kExitInterrupted : kExitOk;
}

void print_note(const ChatReply& reply, std::chrono::duration<double> elapsed) {
  std::fprintf(stderr, "[%s%lld tokens, %.1f tokens/s%s]\n", reply.interrupted ? "stopped; " : "",
               static_cast<long long>(reply.completion_tokens),
               static_cast<double>(reply.completion_tokens) / elapsed.count(),
               reply.finish_reason == "length" ? ", cut off by the limit" : "");
}

// False: the person wants to leave.
bool run_line(ChatSession& session, const std::string& line, bool interactive, bool& failed) {
  if (line.empty()) return true;
  if (line == "/quit" || line == "/exit") return false;
  if (line == "/reset") {
    session.reset();
    std::fprintf(stderr, "[the conversation starts anew]\n");
    return true;
  }
  if (line == "/help") {
    std::fprintf(stderr,
                 "[/reset forgets the conversation, /quit leaves, Ctrl-C stops an answer]\n");
    return true;
  }
  const auto started = std::chrono::steady_clock::now();
  const auto reply = session.ask(line, &print_text);
  print_text("\n");
  if (!reply) {
    failed = true;
    std::fprintf(stderr, "spud: %s\n", reply.error().message().c_str());
  } else if (interactive) {
    print_note(*reply, std::chrono::steady_clock::now() - started);
  }
  return true;
}

Result<int> talk(ChatSession& session, const std::string& whom) {
  const bool interactive = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  if (interactive) {
    std::fprintf(stderr, "Talking to %s. /help lists the commands.\n", whom.c_str());
  }
  bool failed = false;
  std::string line;
  while (true) {
    if (interactive) std::fputs("> ", stderr);
    if (!std::getline(std::cin, line)) break;
    if (!run_line(session, line, interactive, failed)) break;
  }
  // A person saw the message; a script needs the code.
  return failed && !interactive ? kExitFailure : kExitOk;
}

Result<int> chat(Arguments arguments, const GlobalOptions& globals) {
  std::unique_ptr<LocalServer> local;
  if (!arguments.target.starts_with("http://") && !arguments.target.starts_with("https://")) {
    telemetry::init_logging({.level = telemetry::Level::warn});
    if (!globals.quiet && !globals.json) {
      std::fprintf(stderr, "Loading %s\n", arguments.target.c_str());
    }
    SPUD_TRY(local, LocalServer::start(arguments.target, globals));
    arguments.target = local->url();
  }
  SPUD_TRY(arguments.chat.url, http::parse_url(arguments.target));
  // "http://host:8080/v1" is what other tools call the base URL.
  if (arguments.chat.url.path.ends_with("/v1")) {
    arguments.chat.url.path.resize(arguments.chat.url.path.size() - 3);
  }
  if (arguments.chat.api_key.empty()) {
    const char* key = std::getenv("OPENAI_API_KEY");
    if (key != nullptr && local == nullptr) arguments.chat.api_key = key;
  }
  if (arguments.chat.model.empty()) {
    SPUD_TRY(arguments.chat.model, find_served_model(arguments.chat.url, arguments.chat.api_key));
  }
  const std::string whom = local != nullptr ? local->summary() : arguments.chat.model;
  ChatSession session(arguments.chat);
  if (!arguments.once.empty()) return ask_once(session, arguments.once, globals.json);
  return talk(session, whom);
}

}  // namespace

CommandAction define_chat(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("TARGET", arguments->target, "http://HOST:PORT of a server, or a model file")
      ->capture_default_str();
  sub.add_option("--once", arguments->once, "Ask this one question, print the answer and leave");
  sub.add_option("--system", arguments->chat.system, "System message");
  sub.add_option("--model", arguments->chat.model, "Model name; default: the first one served");
  sub.add_option("--api-key", arguments->chat.api_key, "Key; default: OPENAI_API_KEY");
  sub.add_option("--max-tokens", arguments->chat.max_tokens, "Longest answer")
      ->check(CLI::PositiveNumber);
  sub.add_option("--temperature", arguments->chat.temperature, "0 = always the likeliest token")
      ->check(CLI::Range(0.0, 2.0));
  sub.add_option("--seed", arguments->chat.seed, "Same seed, same answer")
      ->check(CLI::NonNegativeNumber);
  return [arguments, &globals] { return chat(*arguments, globals); };
}

}  // namespace spud::app
