// SPDX-License-Identifier: Apache-2.0
// Streams: the order of events, and what happens when a client leaves or does not read.
#include <gmock/gmock.h>

#include "gateway/testing/gateway_fixture.hpp"

namespace spud::gateway::testing {
namespace {

namespace json = boost::json;
using http::testing::post_request;
using http::testing::RawClient;
using ::testing::HasSubstr;

constexpr std::string_view kChat = "/v1/chat/completions";

std::string body(std::string_view fields = "") {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"stream":true{}{}}})",
                     fields.empty() ? "" : ",", fields);
}

TEST_F(GatewayTest, StreamsRoleTextReasonUsageAndDone) {
  start();
  const auto answer = post(kChat, body(R"("stream_options":{"include_usage":true})"));
  EXPECT_EQ(answer.header("Content-Type"), "text/event-stream; charset=utf-8");
  EXPECT_TRUE(answer.complete);
  const auto all = events(answer.body);
  ASSERT_GE(all.size(), 5U);
  EXPECT_EQ(all.back(), "[DONE]");
  std::string text;
  std::set<std::string> ids;
  int num_reasons = 0;
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    const json::value chunk = json::parse(all[i]);
    ids.insert(std::string(chunk.at("id").as_string()));
    EXPECT_TRUE(chunk.at("usage").is_null());
    const auto& delta = chunk.at("choices").at(0).at("delta").as_object();
    EXPECT_EQ(delta.contains("role"), i == 0);
    if (const auto* content = delta.if_contains("content")) text += content->as_string().c_str();
    if (!chunk.at("choices").at(0).at("finish_reason").is_null()) ++num_reasons;
  }
  EXPECT_EQ(text, "Hello, world");
  EXPECT_EQ(ids.size(), 1U);
  EXPECT_EQ(num_reasons, 1);
  const json::value usage = json::parse(all[all.size() - 2]);
  EXPECT_TRUE(usage.at("choices").as_array().empty());
  EXPECT_EQ(usage.at("usage").at("completion_tokens").as_int64(), 13);
}

TEST_F(GatewayTest, StreamsEveryChoiceWithItsOwnRoleAndReason) {
  start();
  const auto answer = post(kChat, body(R"("n":2)"));
  std::map<std::int64_t, std::string> texts;
  std::map<std::int64_t, int> reasons;
  const auto all = events(answer.body);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const json::value chunk = json::parse(all[i]);
    EXPECT_FALSE(chunk.as_object().contains("usage"));
    const json::value& choice = chunk.at("choices").at(0);
    const std::int64_t index = choice.at("index").as_int64();
    if (const auto* content = choice.at("delta").as_object().if_contains("content")) {
      texts[index] += content->as_string().c_str();
    }
    if (!choice.at("finish_reason").is_null()) ++reasons[index];
  }
  EXPECT_EQ(texts[0], "Hello, world");
  EXPECT_EQ(texts[1], "Hello, world");
  EXPECT_EQ(reasons[0], 1);
  EXPECT_EQ(reasons[1], 1);
}

TEST_F(GatewayTest, StreamsACompletionWithEchoAndLogprobs) {
  start();
  const auto answer =
      post("/v1/completions",
           R"({"prompt":"ab","stream":true,"echo":true,"logprobs":0,"max_tokens":2})");
  const auto all = events(answer.body);
  std::string text;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const json::value choice = json::parse(all[i]).at("choices").at(0);
    text += choice.at("text").as_string().c_str();
    if (choice.at("logprobs").is_null()) continue;
    for (const auto& offset : choice.at("logprobs").at("text_offset").as_array()) {
      offsets.push_back(offset.as_int64());
    }
  }
  EXPECT_EQ(text, "abHe");
  EXPECT_EQ(offsets.size(), 2U);
}

TEST_F(GatewayTest, HonoursAStopStringAndLeavesItOut) {
  start();
  const auto answer = post(kChat, body(R"("stop":[", w"])"));
  EXPECT_THAT(answer.body, HasSubstr(R"("finish_reason":"stop")"));
  std::string text;
  for (const std::string& event : events(answer.body)) {
    if (event == "[DONE]") break;
    const json::value delta = json::parse(event).at("choices").at(0).at("delta");
    if (const auto* content = delta.as_object().if_contains("content")) {
      text += content->as_string().c_str();
    }
  }
  EXPECT_EQ(text, "Hello");
}

TEST_F(GatewayTest, CancelsWithinAStepWhenAStreamingClientLeaves) {
  start({.engine = {.manual_steps = true}});
  RawClient client(port());
  client.send(post_request(kChat, body()));
  engine_->step(2);
  ASSERT_TRUE(client.read_until("\"He\"") || client.read_until("\"H\""));
  client.close();
  EXPECT_TRUE(engine_->wait_for(
      [](std::size_t running, std::size_t cancelled) { return running == 0 && cancelled == 1; }));
}

TEST_F(GatewayTest, CancelsWhenAWaitingClientLeavesBeforeTheFirstToken) {
  start({.engine = {.manual_steps = true}});
  auto client = std::make_unique<RawClient>(port());
  client->send(post_request(kChat, R"({"messages":[{"role":"user","content":"x"}],"n":2})"));
  ASSERT_TRUE(engine_->wait_for([](std::size_t running, std::size_t) { return running == 2; }));
  client.reset();
  EXPECT_TRUE(engine_->wait_for(
      [](std::size_t running, std::size_t cancelled) { return running == 0 && cancelled == 2; }));
}

TEST_F(GatewayTest, GivesUpAClientThatDoesNotRead) {
  start({.engine = {.context_length = 4'000'000,
                    .script =
                        [](const engine::GenerationRequest&) {
                          return Result<std::string>(std::string(3'000'000, 'x'));
                        }},
         .gateway = {.max_buffered_bytes = 100'000}});
  RawClient client(port());
  client.send(post_request(kChat, body()));
  // Never reads: the kernel's buffers fill, then ours, then the connection is broken off.
  EXPECT_TRUE(engine_->wait_for(
      [](std::size_t running, std::size_t cancelled) { return running == 0 && cancelled == 1; }));
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(GatewayTest, KeepsAQuietStreamOpenWithComments) {
  start(
      {.engine = {.manual_steps = true}, .gateway = {.heartbeat = std::chrono::milliseconds(10)}});
  RawClient client(port());
  client.send(post_request(kChat, body()));
  ASSERT_TRUE(client.read_until(": keep-alive"));
  engine_->step(100);
  ASSERT_TRUE(client.read_until("[DONE]"));
}

TEST_F(GatewayTest, EndsAStreamThatWasCutOffWithAnErrorAndWithoutDone) {
  start({.engine = {.manual_steps = true}});
  RawClient client(port());
  client.send(post_request(kChat, body()));
  engine_->step(1);
  ASSERT_TRUE(client.read_until("data: "));
  engine_->drain(clock_.now());
  const auto answer = client.read_answer();
  EXPECT_TRUE(answer.complete);  // well-formed HTTP, and still no success
  const auto all = events(answer.body);
  EXPECT_THAT(all.back(), HasSubstr(R"("error":)"));
  EXPECT_THAT(answer.body, ::testing::Not(HasSubstr("[DONE]")));
}

TEST_F(GatewayTest, AnswersOnAConnectionAfterAStream) {
  start();
  RawClient client(port());
  client.send(post_request(kChat, body()) + post_request(kChat, body()));  // pipelined
  EXPECT_EQ(events(client.read_answer().body).back(), "[DONE]");
  EXPECT_EQ(events(client.read_answer().body).back(), "[DONE]");
}

}  // namespace
}  // namespace spud::gateway::testing
