// SPDX-License-Identifier: Apache-2.0
#include "api/responses.hpp"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <limits>

namespace spud::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

AnswerHead head(Surface surface) {
  return {.surface = surface, .id = "id1", .created = 5, .model = "m", .system_fingerprint = "fp"};
}

TokenInfo token(std::string text, float logprob) {
  return {.chosen = {.text = text, .bytes = text, .logprob = logprob},
          .top = {{.text = text, .bytes = text, .logprob = logprob}}};
}

TEST(Responses, PutTextUsageAndReasonWhereEachSurfaceWantsThem) {
  const std::vector<Choice> choices = {{.index = 0, .text = "a\"b", .finish_reason = "stop"}};
  const json::value chat = json::parse(
      make_answer(head(Surface::kChat), choices, {.prompt_tokens = 3, .completion_tokens = 4}));
  EXPECT_EQ(chat.at("object").as_string(), "chat.completion");
  EXPECT_EQ(chat.at("choices").at(0).at("message").at("content").as_string(), "a\"b");
  EXPECT_EQ(chat.at("usage").at("total_tokens").as_int64(), 7);
  EXPECT_EQ(chat.at("usage").at("prompt_tokens_details").at("cached_tokens").as_int64(), 0);
  const json::value text = json::parse(make_answer(head(Surface::kCompletion), choices, {}));
  EXPECT_EQ(text.at("object").as_string(), "text_completion");
  EXPECT_EQ(text.at("choices").at(0).at("text").as_string(), "a\"b");
  EXPECT_EQ(text.at("choices").at(0).at("finish_reason").as_string(), "stop");
}

TEST(Responses, CarryNullUsageInChunksOnlyWhenUsageWasAskedFor) {
  AnswerHead plain = head(Surface::kChat);
  EXPECT_THAT(make_chunk(plain, {.text = "x"}), Not(HasSubstr("usage")));
  plain.usage_in_stream = true;
  EXPECT_THAT(make_chunk(plain, {.text = "x"}), HasSubstr(R"("usage":null)"));
  const std::string last = make_usage_chunk(plain, {.prompt_tokens = 1, .completion_tokens = 2});
  EXPECT_THAT(last, HasSubstr(R"("choices":[])"));
  EXPECT_THAT(last, HasSubstr(R"("total_tokens":3)"));
}

TEST(Responses, StartAChatStreamWithTheRole) {
  const json::value chunk = json::parse(make_role_chunk(head(Surface::kChat), 2));
  EXPECT_EQ(chunk.at("choices").at(0).at("index").as_int64(), 2);
  EXPECT_EQ(chunk.at("choices").at(0).at("delta").at("role").as_string(), "assistant");
  EXPECT_TRUE(chunk.at("choices").at(0).at("finish_reason").is_null());
}

TEST(Responses, GiveChatLogprobsWithExactBytes) {
  Choice choice{.tokens = std::vector<TokenInfo>{token("a", -0.5F)}};
  choice.tokens->front().chosen = {.text = "\xEF\xBF\xBD", .bytes = "\xE2\x82", .logprob = -0.5F};
  const json::value chunk = json::parse(make_chunk(head(Surface::kChat), choice));
  const json::value& entry = chunk.at("choices").at(0).at("logprobs").at("content").at(0);
  EXPECT_EQ(json::serialize(entry.at("bytes")), "[226,130]");
  EXPECT_EQ(entry.at("token").as_string(), "\xEF\xBF\xBD");
  EXPECT_EQ(entry.at("top_logprobs").as_array().size(), 1U);
}

TEST(Responses, CountTextOffsetsInCharactersAndLeaveTheFirstEchoedTokenWithoutLogprob) {
  Choice choice{
      .tokens = std::vector<TokenInfo>{token("h\u00e9", -1), token("\u20ac", -2), token("x", -3)},
      .first_text_offset = 10};
  choice.tokens->front().has_logprob = false;
  const json::value chunk = json::parse(make_chunk(head(Surface::kCompletion), choice));
  const json::value& logprobs = chunk.at("choices").at(0).at("logprobs");
  EXPECT_EQ(json::serialize(logprobs.at("text_offset")), "[10,12,13]");
  EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());
  EXPECT_TRUE(logprobs.at("top_logprobs").at(0).is_null());
  EXPECT_EQ(logprobs.at("token_logprobs").at(2).as_double(), -3);
}

TEST(Responses, WriteImpossibleTokensAsANumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Choice choice{.tokens = std::vector<TokenInfo>{token("a", -infinity)}};
  EXPECT_THAT(make_chunk(head(Surface::kCompletion), choice), HasSubstr("-9.999E3"));
}

TEST(Utf8, ReplacesEachBrokenPartByOneMark) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("h\u00e9\u20ac\U0001F600"), "h\u00e9\u20ac\U0001F600");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"), mark);                    // cut off
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82z"), mark + "z");             // cut off, text goes on
  EXPECT_EQ(replace_invalid_utf8("\xC0\x80"), mark + mark);             // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), mark + mark + mark);  // surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80").size(), 4 * mark.size());  // beyond Unicode
  EXPECT_EQ(replace_invalid_utf8("\x80\xFF"), mark + mark);
  EXPECT_EQ(count_characters("h\u00e9\u20ac"), 3);
}

}  // namespace
}  // namespace spud::api
