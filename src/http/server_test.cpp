// SPDX-License-Identifier: Apache-2.0
#include "http/server.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>

#include "http/task_group.hpp"
#include "http/testing/raw_client.hpp"

namespace spud::http {
namespace {

namespace asio = boost::asio;
using namespace std::string_literals;
using testing::get_request;
using ::testing::HasSubstr;
using testing::post_request;
using testing::RawAnswer;
using testing::RawClient;

asio::awaitable<void> echo(Exchange& exchange) {
  Response response{.content_type = "text/plain"};
  response.body =
      exchange.request().method + " " + exchange.request().path + " " + exchange.take_body();
  const Result<void> sent = co_await exchange.respond(std::move(response));
  static_cast<void>(sent);
}

asio::awaitable<void> stream_two(Exchange& exchange) {
  Response head{.content_type = "text/plain"};  // named: GCC 12 destroys a braced argument twice
  Result<void> ok = co_await exchange.begin_stream(std::move(head));
  ok = co_await exchange.write("one ");
  ok = co_await exchange.write("two");
  ok = co_await exchange.finish_stream();
}

asio::awaitable<void> stream_and_break_off(Exchange& exchange) {
  Response head{.content_type = "text/plain"};  // named: GCC 12 destroys a braced argument twice
  Result<void> ok = co_await exchange.begin_stream(std::move(head));
  ok = co_await exchange.write("half");
}

asio::awaitable<void> throw_up(Exchange&) {
  throw std::runtime_error("handler bug");
  co_return;
}

asio::awaitable<void> route(Exchange& exchange) {
  const std::string& path = exchange.request().path;
  if (path == "/stream") {
    co_await stream_two(exchange);
  } else if (path == "/broken") {
    co_await stream_and_break_off(exchange);
  } else if (path == "/throw") {
    co_await throw_up(exchange);
  } else if (path != "/silent") {
    co_await echo(exchange);
  }
}

// A server on its own thread and a free port.
class ServerTest : public ::testing::Test {
 protected:
  void start(ServerOptions options) {
    auto server = Server::listen(io_.get_executor(), std::move(options), &route);
    ASSERT_TRUE(server.has_value()) << server.error().message();
    server_ = *std::move(server);
    port_ = server_->port();
    server_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  void TearDown() override {
    asio::post(io_, [this] {
      server_->stop_accepting();
      server_->cancel_all();
    });
    thread_.join();
  }

  asio::io_context io_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(ServerTest, AnswersManyRequestsOnOneConnection) {
  start({});
  RawClient client(port_);
  for (int i = 0; i < 3; ++i) {
    client.send(post_request(fmt::format("/a%20{}", i), "body"));
    const RawAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, fmt::format("POST /a {} body", i));
    EXPECT_EQ(answer.header("Connection"), "keep-alive");
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  start({});
  RawClient client(port_);
  std::string all;
  for (int i = 0; i < 20; ++i) all += get_request(fmt::format("/{}", i));
  client.send(all);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.read_answer().body, fmt::format("GET /{} ", i));
}

TEST_F(ServerTest, TakesAChunkedBodyAndExpectContinue) {
  start({});
  RawClient client(port_);
  client.send(
      "POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(client.read_until("\r\n\r\n"));
  EXPECT_THAT(client.received(), HasSubstr("100 Continue"));
  const RawAnswer interim = client.read_answer(/*head_request=*/true);
  EXPECT_EQ(interim.status, 100);
  client.send("3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_answer().body, "POST /x abcde");
}

TEST_F(ServerTest, RefusesABodyBeyondTheLimitWithoutReadingIt) {
  start({.max_body_bytes = 1000});
  RawClient announced(port_);
  announced.send(
      "POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(announced.read_answer().status, 413);  // and no 100
  EXPECT_TRUE(announced.at_end());
  RawClient chunked(port_);
  chunked.send(fmt::format(
      "POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n{}\r\n0\r\n\r\n",
      std::string(2000, 'x')));
  EXPECT_EQ(chunked.read_answer().status, 413);
  RawClient exact(port_);
  exact.send(post_request("/x", std::string(1000, 'x')));
  EXPECT_EQ(exact.read_answer().status, 200);
}

TEST_F(ServerTest, RefusesBodiesBeyondTheSumOfAllAndForgetsThemAfterwards) {
  start({.max_body_bytes = 5000, .max_total_body_bytes = 1000});
  for (int i = 0; i < 3; ++i) {
    RawClient greedy(port_);
    greedy.send(post_request("/x", std::string(2000, 'x')));
    const RawAnswer answer = greedy.read_answer();
    EXPECT_EQ(answer.status, 503);
    EXPECT_FALSE(answer.header("Retry-After").empty());
    EXPECT_TRUE(greedy.at_end());
    RawClient modest(port_);
    modest.send(post_request("/x", std::string(900, 'x')));
    EXPECT_EQ(modest.read_answer().status, 200);
  }
}

TEST_F(ServerTest, RefusesHeadersBeyondTheLimit) {
  start({.max_header_bytes = 2000});
  RawClient client(port_);
  client.send(fmt::format("GET / HTTP/1.1\r\nHost: t\r\nX: {}\r\n\r\n", std::string(3000, 'x')));
  EXPECT_EQ(client.read_answer().status, 431);
  RawClient endless(port_);
  endless.send(fmt::format("GET /{}", std::string(200'000, 'a')));
  EXPECT_EQ(endless.read_answer().status, 431);
}

TEST_F(ServerTest, Answers400ToWhatIsNotHttp) {
  start({});
  const std::vector<std::string> cases = {
      "garbage\r\n\r\n",
      "GET / HTTP/9.9\r\nHost: t\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: t\r\n\r\n",
      "G@T / HTTP/1.1\r\nHost : t\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",  // no Host
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET nopath HTTP/1.1\r\nHost: t\r\n\r\n",
      "GET /%zz HTTP/1.1\r\nHost: t\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "GET / HTTP/1.1\r\nHost: t\r\nBad Name: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: t\r\nX: \0\r\n\r\n"s};
  for (const std::string& text : cases) {
    RawClient client(port_);
    client.send(text);
    client.close_sending();
    const RawAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 400) << text;
    EXPECT_EQ(answer.header("Connection"), "close") << text;
  }
}

TEST_F(ServerTest, GivesUpOnSlowHeadersAndSlowBodies) {
  start({.header_timeout = std::chrono::milliseconds(50),
         .body_timeout = std::chrono::milliseconds(50)});
  RawClient headers(port_);
  headers.send("GET / HTTP/1.1\r\nHo");
  EXPECT_EQ(headers.read_answer().status, 408);
  RawClient body(port_);
  body.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(body.read_answer().status, 408);
}

TEST_F(ServerTest, ClosesIdleConnections) {
  start({.idle_timeout = std::chrono::milliseconds(50)});
  RawClient client(port_);
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(client.received(), "");
}

TEST_F(ServerTest, RefusesConnectionsWhenAllAreBusyAndTakesThemAgainLater) {
  start({.max_connections = 1});
  auto first = std::make_unique<RawClient>(port_);
  first->send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(first->read_until("100 Continue"));  // now busy with the body
  RawClient second(port_);
  const RawAnswer refusal = second.read_answer();
  EXPECT_EQ(refusal.status, 503);
  EXPECT_EQ(refusal.header("Retry-After"), "1");
  first.reset();
  RawAnswer answer;
  for (int i = 0; i < 1000 && answer.status != 200; ++i) {
    RawClient third(port_);
    third.send(get_request("/"));
    answer = third.read_answer();
  }
  EXPECT_EQ(answer.status, 200);
}

TEST_F(ServerTest, GivesThePlaceOfTheLongestIdleConnectionToANewOne) {
  start({.max_connections = 3});
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(std::make_unique<RawClient>(port_));
    idle.back()->send(get_request("/"));
    EXPECT_EQ(idle.back()->read_answer().status, 200);
  }
  idle[0]->send(get_request("/"));  // now the second has waited longest
  EXPECT_EQ(idle[0]->read_answer().status, 200);
  RawClient newcomer(port_);
  newcomer.send(get_request("/"));
  EXPECT_EQ(newcomer.read_answer().status, 200);
  EXPECT_TRUE(idle[1]->at_end());
  for (RawClient* kept : {idle[0].get(), idle[2].get()}) {
    kept->send(get_request("/"));
    EXPECT_EQ(kept->read_answer().status, 200);
  }
}

TEST_F(ServerTest, StreamsInChunksAndToOldClientsUntilTheEnd) {
  start({});
  RawClient client(port_);
  client.send(get_request("/stream"));
  const RawAnswer chunked = client.read_answer();
  EXPECT_EQ(chunked.header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(chunked.body, "one two");
  RawClient old(port_);
  old.send("GET /stream HTTP/1.0\r\n\r\n");
  const RawAnswer plain = old.read_answer();
  EXPECT_EQ(plain.header("Transfer-Encoding"), "");
  EXPECT_EQ(plain.body, "one two");
}

TEST_F(ServerTest, DoesNotEndAStreamThatItsHandlerLeft) {
  start({});
  RawClient client(port_);
  client.send(get_request("/broken"));
  const RawAnswer answer = client.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "half");
  EXPECT_FALSE(answer.complete);
}

TEST_F(ServerTest, Answers500WhenAHandlerThrowsOrSaysNothing) {
  start({});
  for (const std::string_view path : {"/throw", "/silent"}) {
    RawClient client(port_);
    client.send(get_request(path));
    EXPECT_EQ(client.read_answer().status, 500) << path;
  }
}

TEST_F(ServerTest, SendsNoBodyToHead) {
  start({});
  RawClient client(port_);
  client.send("HEAD /x HTTP/1.1\r\nHost: t\r\n\r\n");
  const RawAnswer head = client.read_answer(/*head_request=*/true);
  EXPECT_EQ(head.header("Content-Length"), "8");
  client.send(get_request("/y"));
  EXPECT_EQ(client.read_answer().body, "GET /y ");
}

TEST_F(ServerTest, SaysWhenThePortIsTaken) {
  start({});
  const auto second = Server::listen(io_.get_executor(), {.port = port_}, &route);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message(), HasSubstr(fmt::format("127.0.0.1:{}", port_)));
}

}  // namespace
}  // namespace spud::http
