// SPDX-License-Identifier: Apache-2.0
// Requests with random damage: whatever the bytes, parsing ends with a request that keeps its
// promises or with a refusal. The same inputs every time; the fuzz target goes further.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

#include "api/requests.hpp"

namespace spud::api {
namespace {

constexpr std::string_view kSeeds[] = {
    R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9"}]}],
        "temperature":0.5,"n":2,"stop":["a"],"logit_bias":{"5":-1},"stream":true,
        "stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":3,"seed":-1})",
    R"({"prompt":["a",[1,2]],"max_tokens":0,"echo":true,"logprobs":2,"best_of":1,"suffix":""})",
    R"({"content":"x","add_special":true,"with_pieces":true,"tokens":[1,2,3]})",
};
// Whole words reach deeper than bytes.
constexpr std::string_view kWords[] = {
    "null",  "true", "[]",   "{}", "-1", "1e999", "0.5", "\"\"",
    "[[",    "\\u0", "\xFF", "{",  "}",  ",",     ":",   "99999999999999999999999",
    "\"n\"", "[1]"};

std::string damage(std::string text, std::mt19937& random) {
  const std::size_t num_edits = 1 + random() % 4;
  for (std::size_t i = 0; i < num_edits && !text.empty(); ++i) {
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      case 2:
        text.insert(at, kWords[random() % std::size(kWords)]);
        break;
      default: {
        const std::size_t size = std::min(text.size() - at, std::size_t{1 + random() % 4});
        text.replace(at, size, kWords[random() % std::size(kWords)]);
      }
    }
  }
  return text;
}

void check(const GenerationParams& params) {
  EXPECT_TRUE(params.temperature >= 0 && params.temperature <= 2);
  EXPECT_TRUE(params.top_p >= 0 && params.top_p <= 1);
  EXPECT_TRUE(params.n >= 1 && params.n <= 16);
  EXPECT_TRUE(params.top_logprobs >= -1 && params.top_logprobs <= kMaxTopLogprobs);
  EXPECT_LE(params.stop.size(), kMaxStopStrings);
  for (const auto& [token, bias] : params.logit_bias) {
    EXPECT_TRUE(token >= 0 && bias >= -100 && bias <= 100);
  }
}

TEST(RequestMutation, EndsInAValidRequestOrARefusal) {
  std::mt19937 random(20261130);
  int num_accepted = 0;
  for (int round = 0; round < 30'000; ++round) {
    const std::string body = damage(std::string(kSeeds[round % std::size(kSeeds)]), random);
    SCOPED_TRACE(body);
    if (const auto chat = parse_chat_request(body)) {
      ++num_accepted;
      check(chat->params);
      for (const auto& message : chat->messages.as_array()) {
        EXPECT_TRUE(message.at("content").is_string());
      }
    } else {
      EXPECT_FALSE(chat.error().message().empty());
    }
    if (const auto completion = parse_completion_request(body)) {
      ++num_accepted;
      check(completion->params);
      EXPECT_FALSE(completion->prompts.empty());
    }
    if (parse_tokenize_request(body)) ++num_accepted;
    if (parse_detokenize_request(body)) ++num_accepted;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_accepted, 1000);  // the damage is not so heavy that nothing gets through
}

}  // namespace
}  // namespace spud::api
