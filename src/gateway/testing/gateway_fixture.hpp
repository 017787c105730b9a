// SPDX-License-Identifier: Apache-2.0
// A whole door for tests: scripted engine, gateway and HTTP server on a free port, on its own
// thread. Clients talk to it through real sockets.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/json.hpp>
#include <memory>
#include <thread>

#include "gateway/gateway.hpp"
#include "gateway/testing/scripted_engine.hpp"
#include "http/server.hpp"
#include "http/sse.hpp"
#include "http/testing/raw_client.hpp"

namespace spud::gateway::testing {

// Writes "<|start|>role\ncontent<|end|>" per message.
class PlainTemplate final : public tokenizer::ChatTemplate {
 public:
  Result<std::vector<tokenizer::PromptPiece>> render(
      const tokenizer::ChatTemplateInput& input,
      const tokenizer::ChatTemplateLimits&) const override {
    std::vector<tokenizer::PromptPiece> out;
    for (const auto& message : input.messages.as_array()) {
      const std::string content(message.at("content").as_string());
      if (content == "refuse me") {
        return fail(ErrorCode::kInvalidArgument, "Conversation roles must alternate");
      }
      out.push_back({.text = fmt::format("<|start|>{}\n", message.at("role").as_string().c_str())});
      out.push_back({.text = content, .from_user = true});
      out.push_back({.text = "<|end|>"});
    }
    return out;
  }
};

class GatewayTest : public ::testing::Test {
 protected:
  struct Setup {
    ScriptedOptions engine;
    GatewayOptions gateway;
    http::ServerOptions server;
    ApiKeys keys;
    bool can_chat = true;
    RequestLog* request_log = nullptr;
  };

  void start() { start(Setup{}); }
  void start(Setup setup) {
    engine_ = std::make_unique<ScriptedEngine>(std::move(setup.engine));
    GatewayParts parts{.keys = std::move(setup.keys),
                       .metrics = &metrics_,
                       .clock = &clock_,
                       .blocking = &blocking_,
                       .request_log = setup.request_log};
    parts.host.card = {.id = "tiny", .context = engine_->context_length(), .fingerprint = "fp_1"};
    parts.host.engine = engine_.get();
    if (setup.can_chat) parts.host.chat_template = std::make_shared<PlainTemplate>();
    parts.host.no_chat_reason = "it has no chat template";
    gateway_ = std::make_unique<Gateway>(setup.gateway, std::move(parts));
    setup.server.error_body = &Gateway::server_error_body;
    auto server =
        http::Server::listen(io_.get_executor(), std::move(setup.server), gateway_->handler());
    ASSERT_TRUE(server.has_value()) << server.error().message();
    server_ = *std::move(server);
    server_->start();
    thread_ = std::thread([this] { io_.run(); });
  }

  void TearDown() override {
    if (!thread_.joinable()) return;
    boost::asio::post(io_, [this] {
      server_->stop_accepting();
      server_->cancel_all();
    });
    thread_.join();
  }

  std::uint16_t port() const { return server_->port(); }
  http::testing::RawAnswer post(std::string_view path, std::string_view body,
                                std::string_view headers = "") {
    http::testing::RawClient client(port());
    client.send(http::testing::post_request(path, body, headers));
    return client.read_answer();
  }
  http::testing::RawAnswer get(std::string_view path, std::string_view headers = "") {
    http::testing::RawClient client(port());
    client.send(http::testing::get_request(path, headers));
    return client.read_answer();
  }
  // The data of every event of a stream.
  static std::vector<std::string> events(std::string_view body) {
    std::vector<std::string> out;
    http::SseParser parser;
    const auto ok =
        parser.push(body, [&out](const http::SseEvent& event) { out.push_back(event.data); });
    EXPECT_TRUE(ok.has_value());
    return out;
  }

  concurrency::RealClock clock_;
  telemetry::MetricsRegistry registry_;
  ServerMetrics metrics_{registry_};
  boost::asio::io_context io_;
  boost::asio::thread_pool blocking_{1};
  std::unique_ptr<ScriptedEngine> engine_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;  // last: runs all of the above
};

}  // namespace spud::gateway::testing
