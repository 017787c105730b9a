// SPDX-License-Identifier: Apache-2.0
#include "loadgen/runner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>

#include "http/server.hpp"
#include "http/sse.hpp"
#include "http/task_group.hpp"
#include "loadgen/summary.hpp"

namespace spud::loadgen {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What the scripted server does with a request; chosen by its API key.
struct Script {
  std::atomic<int> open{0};  // requests being answered
  std::atomic<int> most_open{0};
};

asio::awaitable<void> wait_for(http::Exchange& exchange, milliseconds time) {
  asio::steady_timer timer(exchange.executor(), time);
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> answer(http::Exchange& exchange, milliseconds first) {
  co_await wait_for(exchange, first);
  http::Response head{.content_type = "text/event-stream"};
  Result<void> ok = co_await exchange.begin_stream(std::move(head));
  ok = co_await exchange.write(http::sse_data(R"({"choices":[{"text":"a"}]})"));
  ok = co_await exchange.write(http::sse_data(R"({"choices":[{"text":"b"}]})"));
  ok = co_await exchange.write(
      http::sse_data(R"({"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}})"));
  ok = co_await exchange.write("data: [DONE]\n\n");
  ok = co_await exchange.finish_stream();
}

asio::awaitable<void> serve(http::Exchange& exchange, Script* script) {
  const std::string key(exchange.request().headers.find("Authorization").value_or(""));
  script->most_open = std::max(script->most_open.load(), ++script->open);
  if (key == "Bearer refuse") {
    http::Response refusal{.status = 429, .body = R"({"error":{"message":"full"}})"};
    const Result<void> sent = co_await exchange.respond(std::move(refusal));
    static_cast<void>(sent);
  } else if (key == "Bearer hang") {
    co_await wait_for(exchange, seconds(30));
  } else {
    co_await answer(exchange, key == "Bearer slow" ? milliseconds(100) : milliseconds(1));
  }
  --script->open;
}

class RunnerTest : public ::testing::Test {
 public:
  ~RunnerTest() override {
    asio::post(io_, [this] {
      server_->stop_accepting();
      server_->cancel_all();
    });
    thread_.join();
  }

 protected:
  RunnerTest() {
    auto listening = http::Server::listen(
        io_.get_executor(), {.max_connections = 256},
        [this](http::Exchange& exchange) { return serve(exchange, &script_); });
    server_ = *std::move(listening);
    url_ = {.host = "127.0.0.1", .port = std::to_string(server_->port()), .path = ""};
    server_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  RunResult run(const std::vector<TenantOptions>& tenants, RunOptions options = {}) {
    const auto plan = make_plan(tenants, options.duration, 1);
    EXPECT_TRUE(plan.has_value());
    return run_load(tenants, *plan, PromptMaker({.form = PromptForm::kText}), url_, options);
  }

  Script script_;
  asio::io_context io_;
  std::unique_ptr<http::Server> server_;
  http::Url url_;
  std::thread thread_;
};

TEST_F(RunnerTest, EveryPlannedRequestIsSentAtItsTimeAndCounted) {
  const RunResult result =
      run({{.arrivals = ArrivalKind::kConstant, .rate = 100, .requests = 20, .prompt = {8, 8}}});
  ASSERT_EQ(result.outcomes.size(), 20U);
  for (std::size_t i = 0; i < result.outcomes.size(); ++i) {
    const Outcome& outcome = result.outcomes[i];
    EXPECT_EQ(outcome.kind, OutcomeKind::kOk) << to_string(outcome.kind);
    EXPECT_EQ(outcome.scheduled, milliseconds(10) * i);
    EXPECT_GE(outcome.sent, outcome.scheduled);
    EXPECT_GE(outcome.first_text, outcome.sent);
    EXPECT_GE(outcome.ended, outcome.last_text);
    EXPECT_EQ(outcome.output_tokens, 2);
  }
}

TEST_F(RunnerTest, AnOpenLoopDoesNotWaitForASlowServer) {
  const RunResult result =
      run({{.api_key = "slow", .arrivals = ArrivalKind::kBurst, .requests = 12}});
  EXPECT_EQ(summarize(result.outcomes, {}).answered, 12U);
  EXPECT_EQ(script_.most_open, 12);
}

TEST_F(RunnerTest, BeyondTheLimitRequestsAreDroppedAndCounted) {
  RunOptions options;
  options.max_in_flight = 3;
  const RunResult result =
      run({{.api_key = "slow", .arrivals = ArrivalKind::kBurst, .requests = 10}}, options);
  const Summary summary = summarize(result.outcomes, {});
  EXPECT_EQ(summary.answered, 3U);
  EXPECT_EQ(summary.failures.at("dropped"), 7U);
  EXPECT_LE(script_.most_open, 3);
}

TEST_F(RunnerTest, AClosedLoopKeepsItsClientsBusyAndNoMore) {
  const RunResult result = run({{.arrivals = ArrivalKind::kClosed, .clients = 4, .requests = 40}});
  EXPECT_EQ(summarize(result.outcomes, {}).answered, 40U);
  EXPECT_LE(script_.most_open, 4);
}

TEST_F(RunnerTest, RefusalsTimeLimitsAndMissingServersAreToldApart) {
  RunOptions options;
  options.client.head_timeout = milliseconds(50);
  const RunResult result =
      run({{.name = "refused", .api_key = "refuse", .arrivals = ArrivalKind::kBurst, .requests = 2},
           {.name = "hangs", .api_key = "hang", .arrivals = ArrivalKind::kBurst, .requests = 1}},
          options);
  const Summary summary = summarize(result.outcomes, {});
  EXPECT_EQ(summary.failures.at("http 429"), 2U);
  EXPECT_EQ(summary.failures.at("timeout"), 1U);
  EXPECT_NE(result.messages.at("http 429").find("full"), std::string::npos);
  url_.port = "1";
  const RunResult nowhere = run({{.arrivals = ArrivalKind::kBurst, .requests = 1}});
  EXPECT_EQ(summarize(nowhere.outcomes, {}).failures.at("no connection"), 1U);
}

TEST_F(RunnerTest, WhatIsStillRunningAtTheEndIsCutOffAndCounted) {
  RunOptions options;
  options.drain = milliseconds(50);
  const RunResult result =
      run({{.api_key = "hang", .arrivals = ArrivalKind::kBurst, .requests = 3}}, options);
  EXPECT_EQ(summarize(result.outcomes, {}).failures.at("unfinished"), 3U);
}

}  // namespace
}  // namespace spud::loadgen
