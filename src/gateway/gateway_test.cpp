// SPDX-License-Identifier: Apache-2.0
// Answers that are one JSON document: shapes, refusals, keys, models, tokens.
#include <gmock/gmock.h>

#include "gateway/testing/gateway_fixture.hpp"

namespace spud::gateway::testing {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kCompletions = "/v1/completions";
constexpr std::string_view kHi = R"({"messages":[{"role":"user","content":"hi"}]})";

std::string chat_body(std::string_view fields) {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],{}}})", fields);
}

TEST_F(GatewayTest, AnswersAChatWithTextReasonAndUsage) {
  start();
  const auto answer = post(kChat, kHi);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::value body = json::parse(answer.body);
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content").as_string(), "Hello, world");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason").as_string(), "stop");
  EXPECT_EQ(body.at("model").as_string(), "tiny");
  EXPECT_EQ(body.at("system_fingerprint").as_string(), "fp_1");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 9);  // <start> user \n h i <end>
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 13);
  EXPECT_THAT(answer.header("x-request-id"), HasSubstr("req_"));
  EXPECT_FALSE(answer.header("openai-processing-ms").empty());
}

TEST_F(GatewayTest, NeverReadsMarkersInUserContent) {
  start();
  const auto answer =
      post(kChat, R"({"messages":[{"role":"user","content":"<|end|>"}],"max_tokens":1})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto prompt = engine_->requests().front().prompt;
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), kEndToken), 1);  // the template's own
}

TEST_F(GatewayTest, HandsEveryParameterToTheEngine) {
  start();
  post(kChat, chat_body(R"("temperature":0,"top_p":0.5,"top_k":7,"min_p":0.1,"presence_penalty":1,
      "frequency_penalty":-1,"repetition_penalty":1.2,"logit_bias":{"65":5},"seed":42,"n":2,
      "max_tokens":3,"stop":"x","logprobs":true,"top_logprobs":2,"ignore_eos":true)"));
  const auto requests = engine_->requests();
  ASSERT_EQ(requests.size(), 2U);
  const auto& sampling = requests[0].sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_k, 7);
  EXPECT_EQ(sampling.logit_bias.at(65), 5);
  EXPECT_EQ(sampling.seed, 42U);
  EXPECT_NE(requests[1].sampling.seed, 42U);  // choices differ, the same way every time
  EXPECT_EQ(requests[0].max_tokens, 3);
  EXPECT_EQ(requests[0].top_logprobs, 2);
  EXPECT_TRUE(requests[0].ignore_eos);
  EXPECT_TRUE(requests[0].deadline.has_value());
}

TEST_F(GatewayTest, HandsTenantPriorityAndTheEarliestDeadlineToTheEngine) {
  start(
      {.keys =
           ApiKeys::parse("alice " + sha256_hex("secret") + " weight=3 priority=4", "k").value()});
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(post(kChat, chat_body(R"("max_tokens":2)"), key).status, 200);
  EXPECT_EQ(post(kChat, chat_body(R"("max_tokens":2,"priority":-2,"timeout":60)"), key).status,
            200);
  EXPECT_EQ(post(kChat, chat_body(R"("max_tokens":2,"timeout":60)"),
                 key + "X-Request-Timeout-Ms: 20000\r\n")
                .status,
            200);
  const auto requests = engine_->requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].tenant, "alice");
  EXPECT_EQ(requests[0].weight, 3);
  EXPECT_EQ(requests[0].priority, 4);
  EXPECT_EQ(requests[1].priority, -2);
  ASSERT_TRUE(requests[0].deadline && requests[1].deadline && requests[2].deadline);
  using std::chrono::seconds;
  EXPECT_GT(*requests[0].deadline - *requests[1].deadline, seconds(500));
  EXPECT_GT(*requests[1].deadline - *requests[2].deadline, seconds(30));
  for (const char* bad : {"soon", "0", "-5", "86400001", "1.5"}) {
    EXPECT_EQ(post(kChat, kHi, key + "X-Request-Timeout-Ms: " + bad + "\r\n").status, 400) << bad;
  }
  EXPECT_EQ(post(kChat, chat_body(R"("priority":1001)"), key).status, 400);
  EXPECT_EQ(post(kChat, chat_body(R"("timeout":0)"), key).status, 400);
}

TEST_F(GatewayTest, RefusalForADeadlineSaysWhenToTryAgain) {
  start({.engine = {.script = [](const engine::GenerationRequest&) -> Result<std::string> {
           return fail(ErrorCode::kUnavailable, "would be late");
         }}});
  for (const std::string& body : {std::string(kHi), chat_body(R"("stream":true)")}) {
    const auto answer = post(kChat, body);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.header("Retry-After"), "3");
  }
}

TEST_F(GatewayTest, GivesEachChoiceItsIndexAndCountsThePromptOnce) {
  start();
  const json::value body = json::parse(post(kChat, chat_body(R"("n":3,"max_tokens":5)")).body);
  ASSERT_EQ(body.at("choices").as_array().size(), 3U);
  EXPECT_EQ(body.at("choices").at(2).at("index").as_int64(), 2);
  EXPECT_EQ(body.at("choices").at(2).at("finish_reason").as_string(), "length");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 9);
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 15);
}

TEST_F(GatewayTest, AnswersSeveralPromptsInOrderWithEcho) {
  start({.engine = {.script = [](const engine::GenerationRequest& request) {
           return Result<std::string>(fmt::format("<{}>", request.prompt.size()));
         }}});
  const auto answer = post(kCompletions, R"({"prompt":["abc",[104,105]],"n":2,"echo":true})");
  const json::value body = json::parse(answer.body);
  ASSERT_EQ(body.at("choices").as_array().size(), 4U) << answer.body;
  EXPECT_EQ(body.at("choices").at(1).at("text").as_string(), "abc<3>");
  EXPECT_EQ(body.at("choices").at(2).at("text").as_string(), "hi<2>");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 5);
}

TEST_F(GatewayTest, ScoresAPromptWithoutGenerating) {
  start();
  const auto answer =
      post(kCompletions, R"({"prompt":"abc","max_tokens":0,"echo":true,"logprobs":1})");
  const json::value body = json::parse(answer.body);
  EXPECT_EQ(body.at("choices").at(0).at("text").as_string(), "abc") << answer.body;
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 0);
  EXPECT_TRUE(engine_->requests().front().echo_prompt_logprobs);
}

TEST_F(GatewayTest, ListsLogprobsOfTextTokensOnly) {
  start();
  const json::value chat =
      json::parse(post(kChat, chat_body(R"("logprobs":true,"top_logprobs":2)")).body);
  const auto& content = chat.at("choices").at(0).at("logprobs").at("content").as_array();
  EXPECT_EQ(content.size(), 12U);  // not the end token
  EXPECT_EQ(content[0].at("token").as_string(), "H");
  EXPECT_EQ(content[0].at("top_logprobs").as_array().size(), 2U);
  const json::value text =
      json::parse(post(kCompletions, R"({"prompt":"x","logprobs":1,"max_tokens":3})").body);
  EXPECT_EQ(json::serialize(text.at("choices").at(0).at("logprobs").at("text_offset")), "[0,1,2]");
}

struct Refusal {
  std::string_view path;
  std::string_view body;
  int status;
  std::string_view part;
};

TEST_F(GatewayTest, RefusesWithStatusParamAndCode) {
  start();
  const std::vector<Refusal> cases = {
      {kChat, "{", 400, "not valid JSON"},
      {kChat, "", 400, "no body"},
      {kChat, R"({"messages":[]})", 400, R"("param":"messages")"},
      {kChat, R"({"messages":[{"role":"user","content":"refuse me"}]})", 400, "must alternate"},
      {kChat, R"({"model":"other","messages":[{"role":"user","content":"x"}]})", 404,
       R"("code":"model_not_found")"},
      {kCompletions, R"({"prompt":""})", 400, R"("param":"prompt")"},
      {kCompletions, R"({"prompt":[999]})", 400, "token 999 does not exist"},
      {"/v1/embeddings", R"({"input":"x"})", 400, "not supported"},
      {"/tokenize", "{}", 400, R"("param":"content")"},
      {"/detokenize", R"({"tokens":[-1]})", 400, R"("param":"tokens")"},
      {"/v1/nothing", "{}", 404, R"("code":"unknown_url")"},
      {"/v1/models", "{}", 405, R"("code":"method_not_allowed")"},
  };
  for (const Refusal& expected : cases) {
    const auto answer = post(expected.path, expected.body);
    EXPECT_EQ(answer.status, expected.status) << expected.path << expected.body << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(expected.part));
    EXPECT_FALSE(answer.header("x-request-id").empty());
  }
  EXPECT_EQ(post("/v1/models", "{}").header("Allow"), "GET, HEAD");
  EXPECT_TRUE(engine_->requests().empty());  // all before any work
}

// Making tokens of megabytes takes seconds; that they cannot fit is known before.
TEST_F(GatewayTest, ATextThatCannotFitIsRefusedBeforeItIsMadeIntoTokens) {
  start({.engine = {.context_length = 20}});
  const auto ask = [&](std::string_view path, std::string_view key, std::string_view text) {
    return post(path, fmt::format(R"({{"{}":{},"max_tokens":1}})", key, text)).body;
  };
  const std::string spaces(1000, ' ');
  EXPECT_THAT(ask(kCompletions, "prompt", fmt::format(R"("{}")", spaces)),
              AllOf(HasSubstr("context_length_exceeded"), HasSubstr("has 1000 bytes")));
  EXPECT_THAT(ask(kCompletions, "prompt", fmt::format(R"(["a","{}"])", spaces)),
              AllOf(HasSubstr("context_length_exceeded"), HasSubstr("has 1000 bytes")));
  EXPECT_THAT(ask(kChat, "messages", fmt::format(R"([{{"role":"user","content":"{}"}}])", spaces)),
              AllOf(HasSubstr("context_length_exceeded"), HasSubstr(R"("param":"messages")"),
                    HasSubstr("bytes; shorten it")));
  EXPECT_TRUE(engine_->requests().empty());
}

TEST_F(GatewayTest, MeasuresTheContextToTheToken) {
  start({.engine = {.context_length = 20}});
  const auto tokens = [](int count) {
    std::string list = "65";
    for (int i = 1; i < count; ++i) list += ",65";
    return list;
  };
  const auto ask = [&](int prompt, int max_tokens) {
    return post(kCompletions,
                fmt::format(R"({{"prompt":[{}],"max_tokens":{}}})", tokens(prompt), max_tokens));
  };
  EXPECT_EQ(ask(19, 1).status, 200);
  EXPECT_EQ(ask(16, 4).status, 200);
  const auto answer_too_long = ask(16, 5);
  EXPECT_EQ(answer_too_long.status, 400);
  EXPECT_THAT(answer_too_long.body, HasSubstr(R"("code":"context_length_exceeded")"));
  EXPECT_THAT(answer_too_long.body, HasSubstr(R"("param":"max_tokens")"));
  const auto prompt_too_long = ask(20, 1);
  EXPECT_EQ(prompt_too_long.status, 400);
  EXPECT_THAT(prompt_too_long.body, HasSubstr(R"("param":"prompt")"));
  // Without max_tokens a chat may fill what is left.
  const auto chat = json::parse(post(kChat, kHi).body);
  EXPECT_EQ(chat.at("choices").at(0).at("finish_reason").as_string(), "length");
  EXPECT_EQ(chat.at("usage").at("total_tokens").as_int64(), 20);
}

TEST_F(GatewayTest, Answers429WhenTheQueueIsFullAndCancelsTheHalfThatFit) {
  start({.engine = {.max_generations = 1, .manual_steps = true}});
  const auto answer = post(kChat, chat_body(R"("n":2)"));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_TRUE(engine_->wait_for(
      [](std::size_t running, std::size_t cancelled) { return running == 0 && cancelled == 1; }));
}

TEST_F(GatewayTest, TurnsAnEngineFailureIntoAnHttpError) {
  start({.engine = {.script = [](const engine::GenerationRequest&) -> Result<std::string> {
           return fail(ErrorCode::kInternal, "a kernel tripped");
         }}});
  EXPECT_EQ(post(kChat, kHi).status, 500);
  const auto streamed = post(kChat, chat_body(R"("stream":true)"));
  EXPECT_EQ(streamed.status, 500);  // nothing was sent yet, so the status can still say it
  EXPECT_THAT(streamed.body, HasSubstr("a kernel tripped"));
}

TEST_F(GatewayTest, AsksForKeysWhereTheyAreNeeded) {
  start({.keys = ApiKeys::parse("alice " + sha256_hex("secret"), "k").value()});
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ready").status, 200);
  EXPECT_EQ(get("/metrics").status, 200);
  const auto missing = get("/v1/models");
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(missing.header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(get("/v1/models", "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(get("/v1/models", "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(post(kChat, kHi).status, 401);
  EXPECT_TRUE(engine_->requests().empty());
}

TEST_F(GatewayTest, ListsItsModelWithTheCertificatesVerdict) {
  start();
  const json::value list = json::parse(get("/v1/models").body);
  EXPECT_EQ(list.at("data").at(0).at("id").as_string(), "tiny");
  EXPECT_EQ(list.at("data").at(0).at("certificate").at("label").as_string(), "uncertified");
  EXPECT_EQ(json::parse(get("/v1/models/tiny").body).at("object").as_string(), "model");
  EXPECT_EQ(get("/v1/models/other").status, 404);
}

TEST_F(GatewayTest, TokenizesAndBack) {
  start();
  EXPECT_EQ(post("/tokenize", R"({"content":"hi<|end|>"})").body, R"({"tokens":[104,105,257]})");
  EXPECT_EQ(post("/tokenize", R"({"content":"h","with_pieces":true})").body,
            R"({"tokens":[{"id":104,"piece":"h"}]})");
  EXPECT_EQ(post("/tokenize", R"({"content":"\u00e9","with_pieces":true})").body,
            R"({"tokens":[{"id":195,"piece":[195]},{"id":169,"piece":[169]}]})");
  EXPECT_EQ(post("/detokenize", R"({"tokens":[104,105,257]})").body, R"({"content":"hi<|end|>"})");
}

TEST_F(GatewayTest, TokenizesAMebibyteAndNoMore) {
  start();
  const auto tokenize = [&](std::size_t bytes) {
    return post("/tokenize", fmt::format(R"({{"content":"{}"}})", std::string(bytes, 'a')));
  };
  EXPECT_EQ(tokenize(1 << 20).status, 200);
  const auto refusal = tokenize((1 << 20) + 1);
  EXPECT_EQ(refusal.status, 400);
  EXPECT_THAT(refusal.body, AllOf(HasSubstr("1048577 bytes"), HasSubstr("at most 1048576")));
}

TEST_F(GatewayTest, RefusesChatWithoutATemplate) {
  start({.can_chat = false});
  const auto answer = post(kChat, kHi);
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("/v1/completions"));
}

TEST_F(GatewayTest, SaysNoWhileDraining) {
  start();
  boost::asio::post(io_, [this] { gateway_->start_draining(); });
  const auto answer = post(kChat, kHi);
  EXPECT_EQ(answer.status, 503);
  EXPECT_FALSE(answer.header("Retry-After").empty());
  EXPECT_EQ(get("/ready").status, 503);
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(GatewayTest, AnswersPreflightOnlyForAConfiguredOrigin) {
  start({.gateway = {.cors_origin = "https://app.example"}});
  http::testing::RawClient client(port());
  client.send("OPTIONS /v1/models HTTP/1.1\r\nHost: t\r\n\r\n");
  const auto answer = client.read_answer();
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.header("Access-Control-Allow-Origin"), "https://app.example");
}

TEST_F(GatewayTest, CountsRequestsTokensAndTimes) {
  start();
  post(kChat, kHi);
  post(kChat, "{");
  const std::string text = get("/metrics").body;
  EXPECT_THAT(text, HasSubstr(R"(spud_gateway_requests_total{code="200",endpoint="chat"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(spud_gateway_requests_total{code="400",endpoint="chat"} 1)"));
  EXPECT_THAT(text, HasSubstr("spud_gateway_prompt_tokens_total 9"));
  EXPECT_THAT(text, HasSubstr("spud_gateway_generated_tokens_total 13"));
  EXPECT_THAT(text, HasSubstr("spud_gateway_time_to_first_token_seconds_count 1"));
}

TEST_F(GatewayTest, EchoesOnlyAPrintableClientRequestId) {
  start();
  EXPECT_EQ(get("/health", "X-Client-Request-Id: abc-1\r\n").header("x-client-request-id"),
            "abc-1");
  EXPECT_EQ(get("/health", "X-Client-Request-Id: a b\r\n").header("x-client-request-id"), "");
}

}  // namespace
}  // namespace spud::gateway::testing
