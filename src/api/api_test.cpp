// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "api/errors.hpp"
#include "api/parse.hpp"
#include "api/requests.hpp"

namespace spud::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kMessages = R"("messages":[{"role":"user","content":"hi"}])";

std::string chat_body(std::string_view fields) {
  return fmt::format("{{{}{}{}}}", kMessages, fields.empty() ? "" : ",", fields);
}

Result<ChatRequest> chat(std::string_view fields) { return parse_chat_request(chat_body(fields)); }

Result<CompletionRequest> completion(std::string_view fields) {
  return parse_completion_request(fmt::format("{{{}}}", fields));
}

TEST(ChatRequest, TakesEveryFieldOfTheApi) {
  const auto request = chat(
      R"("model":"m","temperature":0.5,"top_p":0.9,"min_p":0.1,"top_k":40,"presence_penalty":-1,
         "frequency_penalty":2,"repetition_penalty":1.1,"logit_bias":{"5":-100,"7":3.5},"seed":-1,
         "n":3,"max_tokens":7,"stop":["a","b"],"stream":true,"user":"u","ignore_eos":true,
         "stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":5,
         "tools":[],"response_format":{"type":"text"},"modalities":["text"],"store":false,
         "metadata":{"unknown":"fields are ignored"},"tool_choice":"none")");
  ASSERT_TRUE(request.has_value()) << request.error().message();
  const GenerationParams& params = request->params;
  EXPECT_EQ(params.model, "m");
  EXPECT_FLOAT_EQ(params.temperature, 0.5F);
  EXPECT_EQ(params.top_k, 40);
  EXPECT_EQ(params.seed, -1);
  EXPECT_EQ(params.n, 3);
  EXPECT_EQ(params.max_tokens, 7);
  EXPECT_THAT(params.stop, ElementsAre("a", "b"));
  EXPECT_THAT(params.logit_bias,
              testing::UnorderedElementsAre(std::pair(5, -100.0F), std::pair(7, 3.5F)));
  EXPECT_TRUE(params.stream && params.include_usage && params.ignore_eos);
  EXPECT_EQ(params.top_logprobs, 5);
}

TEST(ChatRequest, TreatsNullAsAbsentAndWholeFloatsAsIntegers) {
  const auto request = chat(R"("temperature":null,"stop":null,"max_tokens":16.0,"tools":null,
      "response_format":null,"logprobs":null,"top_logprobs":null,"stream_options":null,"seed":null)");
  ASSERT_TRUE(request.has_value()) << request.error().message();
  EXPECT_FLOAT_EQ(request->params.temperature, 1.0F);
  EXPECT_EQ(request->params.max_tokens, 16);
  EXPECT_EQ(request->params.top_logprobs, -1);
}

TEST(ChatRequest, PrefersTheNewerNameOfTheTokenLimit) {
  const auto request = chat(R"("max_tokens":5,"max_completion_tokens":9)");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->params.max_tokens, 9);
  EXPECT_EQ(request->params.max_tokens_param, "max_completion_tokens");
}

struct Refusal {
  std::string_view fields;
  std::string_view param;
};
class ChatRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(ChatRefusal, NamesTheFieldAtFault) {
  const auto request = chat(GetParam().fields);
  ASSERT_FALSE(request.has_value()) << GetParam().fields;
  EXPECT_EQ(request.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(request.error().param(), GetParam().param) << request.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Fields, ChatRefusal,
    testing::Values(
        Refusal{R"("temperature":2.1)", "temperature"},
        Refusal{R"("temperature":"hot")", "temperature"},
        Refusal{R"("temperature":1e999)", "temperature"}, Refusal{R"("top_p":-0.1)", "top_p"},
        Refusal{R"("top_k":-2)", "top_k"}, Refusal{R"("top_k":1.5)", "top_k"},
        Refusal{R"("min_p":1.1)", "min_p"}, Refusal{R"("presence_penalty":3)", "presence_penalty"},
        Refusal{R"("frequency_penalty":-3)", "frequency_penalty"},
        Refusal{R"("repetition_penalty":0)", "repetition_penalty"}, Refusal{R"("n":0)", "n"},
        Refusal{R"("n":17)", "n"}, Refusal{R"("n":"2")", "n"},
        Refusal{R"("max_tokens":0)", "max_tokens"}, Refusal{R"("max_tokens":-1)", "max_tokens"},
        Refusal{R"("max_tokens":99999999999)", "max_tokens"},
        Refusal{R"("max_completion_tokens":0)", "max_completion_tokens"},
        Refusal{R"("stop":5)", "stop"}, Refusal{R"("stop":[""])", "stop"},
        Refusal{R"("stop":["a",1])", "stop"}, Refusal{R"("seed":1.5)", "seed"},
        Refusal{R"("seed":18446744073709551615)", "seed"}, Refusal{R"("stream":"yes")", "stream"},
        Refusal{R"("stream_options":{"include_usage":true})", "stream_options"},
        Refusal{R"("stream":true,"stream_options":[])", "stream_options"},
        Refusal{R"("stream":true,"stream_options":{"include_usage":1})",
                "stream_options.include_usage"},
        Refusal{R"("logit_bias":[])", "logit_bias"},
        Refusal{R"("logit_bias":{"x":1})", "logit_bias"},
        Refusal{R"("logit_bias":{"1":101})", "logit_bias"},
        Refusal{R"("logit_bias":{"1":"2"})", "logit_bias"}, Refusal{R"("logprobs":5)", "logprobs"},
        Refusal{R"("top_logprobs":3)", "top_logprobs"},
        Refusal{R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
        Refusal{R"("tools":[{"type":"function"}])", "tools"},
        Refusal{R"("functions":[{}])", "functions"},
        Refusal{R"("tool_choice":"required")", "tool_choice"},
        Refusal{R"("response_format":{"type":"json_object"})", "response_format"},
        Refusal{R"("response_format":"json")", "response_format"},
        Refusal{R"("modalities":["text","audio"])", "modalities"},
        Refusal{R"("audio":{})", "audio"},
        Refusal{R"("chat_template_kwargs":3)", "chat_template_kwargs"},
        Refusal{R"("model":7)", "model"}, Refusal{R"("user":7)", "user"}));

TEST(ChatRequest, RefusesSeventeenStopStringsAndSaysHowManyAreAllowed) {
  std::string list;
  for (int i = 0; i < 17; ++i) list += fmt::format("{}\"s{}\"", i == 0 ? "" : ",", i);
  const auto request = chat(fmt::format(R"("stop":[{}])", list));
  ASSERT_FALSE(request.has_value());
  EXPECT_THAT(request.error().message(), HasSubstr("at most 16"));
}

Result<boost::json::array> messages(std::string_view json) {
  return normalize_messages(parse_json(json).value());
}

TEST(Messages, JoinTextPartsAndRenameDeveloper) {
  const auto out = messages(
      R"([{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
          {"role":"user","content":"q","name":"n"},{"role":"assistant","content":null}])");
  ASSERT_TRUE(out.has_value()) << out.error().message();
  EXPECT_EQ(boost::json::serialize(*out),
            R"([{"role":"system","content":"a\nb"},{"role":"user","content":"q","name":"n"},)"
            R"({"role":"assistant","content":""}])");
}

TEST(Messages, NameTheElementAtFault) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"[]", "messages"},
      {"{}", "messages"},
      {"[1]", "messages[0]"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"robot","content":"x"}])", "messages[0].role"},
      {R"([{"role":"tool","content":"x"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":"x"},{"role":"user","content":5}])", "messages[1].content"},
      {R"([{"role":"user","content":[5]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"assistant","content":"x","tool_calls":[{}]}])", "messages[0].tool_calls"},
      {R"([{"role":"user","content":"x","name":5}])", "messages[0].name"},
  };
  for (const auto& [json, param] : cases) {
    const auto out = messages(json);
    ASSERT_FALSE(out.has_value()) << json;
    EXPECT_EQ(out.error().param(), param) << json;
  }
}

TEST(CompletionRequest, TakesTextAndTokensAloneAndInArrays) {
  EXPECT_EQ(completion(R"("prompt":"")")->prompts.size(), 1U);
  EXPECT_EQ(completion(R"("prompt":["a","b"])")->prompts.size(), 2U);
  const auto tokens = completion(R"("prompt":[1,2,3])");
  ASSERT_EQ(tokens->prompts.size(), 1U);
  EXPECT_THAT(std::get<1>(tokens->prompts[0]), ElementsAre(1, 2, 3));
  const auto mixed = completion(R"("prompt":[[1],"b",[2,3]])");
  ASSERT_EQ(mixed->prompts.size(), 3U);
  EXPECT_THAT(std::get<1>(mixed->prompts[2]), ElementsAre(2, 3));
  EXPECT_EQ(completion(R"("prompt":"x")")->params.max_tokens, 16);
}

TEST(CompletionRequest, NamesTheFieldAtFault) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"", "prompt"},
      {R"("prompt":null)", "prompt"},
      {R"("prompt":[])", "prompt"},
      {R"("prompt":5)", "prompt"},
      {R"("prompt":[true])", "prompt[0]"},
      {R"("prompt":[1,-2])", "prompt"},
      {R"("prompt":[1,"a"])", "prompt"},
      {R"("prompt":["a",1])", "prompt[1]"},
      {R"("prompt":[[1.5]])", "prompt[0]"},
      {R"("prompt":"x","suffix":"y")", "suffix"},
      {R"("prompt":"x","best_of":2)", "best_of"},
      {R"("prompt":"x","logprobs":true)", "logprobs"},
      {R"("prompt":"x","logprobs":21)", "logprobs"},
      {R"("prompt":"x","max_tokens":0)", "max_tokens"},
      {R"("prompt":"x","echo":1)", "echo"},
      {R"("prompt":["a","b","c","d","e","f","g","h","i"],"n":16)", "n"},
  };
  for (const auto& [fields, param] : cases) {
    const auto request = completion(fields);
    ASSERT_FALSE(request.has_value()) << fields;
    EXPECT_EQ(request.error().param(), param) << fields << ": " << request.error().message();
  }
  EXPECT_TRUE(completion(R"("prompt":"x","max_tokens":0,"echo":true)").has_value());
  EXPECT_TRUE(completion(R"("prompt":"x","n":2,"best_of":2,"suffix":"")").has_value());
}

TEST(Json, RefusesWhatIsNotOneDocumentAndSaysWhere) {
  for (const std::string_view text : {"", "{", "{}x", "{\"a\":01}", "[1,]", "{'a':1}", "nul",
                                      "\"\xFF\"", "\"\\ud800\"", "// c\n{}"}) {
    const auto value = parse_json(text);
    ASSERT_FALSE(value.has_value()) << text;
    EXPECT_EQ(value.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_THAT(parse_json("{}x").error().message(), HasSubstr("byte 2"));
  EXPECT_FALSE(parse_json_object("[]").has_value());
}

TEST(Json, LimitsDepthAndKeepsTheLastOfDuplicateKeys) {
  const std::string deep =
      std::string(kMaxJsonDepth + 1, '[') + std::string(kMaxJsonDepth + 1, ']');
  EXPECT_FALSE(parse_json(deep).has_value());
  EXPECT_FALSE(parse_json(std::string(1 << 20, '[')).has_value());
  EXPECT_EQ(boost::json::serialize(parse_json(R"({"a":1,"a":2})").value()), R"({"a":2})");
}

TEST(Errors, MapEveryCodeToItsStatusOnce) {
  EXPECT_EQ(http_status(ErrorCode::kInvalidArgument), 400);
  EXPECT_EQ(http_status(ErrorCode::kNotFound), 404);
  EXPECT_EQ(http_status(ErrorCode::kResourceExhausted), 429);
  EXPECT_EQ(http_status(ErrorCode::kCancelled), 499);
  EXPECT_EQ(http_status(ErrorCode::kInternal), 500);
  EXPECT_EQ(http_status(ErrorCode::kDataLoss), 500);
  EXPECT_EQ(http_status(ErrorCode::kUnimplemented), 501);
  EXPECT_EQ(http_status(ErrorCode::kUnavailable), 503);
  EXPECT_EQ(http_status(ErrorCode::kDeadlineExceeded), 504);
}

TEST(Errors, WearOpenAisEnvelope) {
  const ApiError error =
      to_api_error(Error(ErrorCode::kInvalidArgument, "no").with_param("temperature"));
  EXPECT_EQ(to_json(error), R"({"error":{"message":"no","type":"invalid_request_error",)"
                            R"("param":"temperature","code":null}})");
  EXPECT_GT(to_api_error(Error(ErrorCode::kResourceExhausted, "full")).retry_after_s, 0);
  EXPECT_GT(to_api_error(Error(ErrorCode::kUnavailable, "stop")).retry_after_s, 0);
  EXPECT_EQ(model_not_found("x").status, 404);
  EXPECT_EQ(context_length_exceeded("long", "messages").code, "context_length_exceeded");
}

}  // namespace
}  // namespace spud::api
