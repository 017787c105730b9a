// SPDX-License-Identifier: Apache-2.0
#include "http/sse.hpp"

#include <gmock/gmock.h>

#include <random>

namespace spud::http {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> parse(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  std::vector<std::string> out;
  for (const std::string_view piece : pieces) {
    const Result<void> ok = parser.push(piece, [&](const SseEvent& event) {
      out.push_back(fmt::format("{}|{}|{}", event.type, event.id, event.data));
    });
    EXPECT_TRUE(ok.has_value());
  }
  return out;
}

constexpr std::string_view kStream =
    "\xEF\xBB\xBF: hello\r\n"
    "data: {\"a\":1}\r\n\r\n"
    "data:no space\n\n"
    "event: error\rdata: one\rdata:\rdata: three\r\r"
    "id: 7\ndata:  two spaces\n\n"
    "nonsense\ndata\n\n"
    "event: never sent\n\n"
    "data: [DONE]\n\n"
    "data: cut off";

const std::vector<std::string> kExpected = {"||{\"a\":1}",    "||no space", "error||one\n\nthree",
                                            "|7| two spaces", "|7|",        "|7|[DONE]"};

TEST(SseParser, TakesEveryLineEndCommentAndMultiLineData) {
  EXPECT_EQ(parse({kStream}), kExpected);
}

TEST(SseParser, GivesTheSameEventsWhereverTheBytesAreCut) {
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    EXPECT_EQ(parse({kStream.substr(0, cut), kStream.substr(cut)}), kExpected) << "cut at " << cut;
  }
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < kStream.size(); ++i) bytes.push_back(kStream.substr(i, 1));
  EXPECT_EQ(parse(bytes), kExpected);
}

TEST(SseParser, RefusesAnEventBeyondItsLimit) {
  SseParser parser(100);
  const Result<void> one_line = parser.push(std::string(101, 'x'), [](const SseEvent&) {});
  ASSERT_FALSE(one_line.has_value());
  EXPECT_EQ(one_line.error().code(), ErrorCode::kResourceExhausted);
  SseParser many(100);
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "data: xxxx\n";
  EXPECT_FALSE(many.push(lines, [](const SseEvent&) {}).has_value());
}

TEST(SseParser, ReadsBackWhatSseDataWrites) {
  const std::string text = sse_data("a\nb\r\nc\rd") + sse_comment("keep-alive") + sse_data("");
  EXPECT_THAT(parse({text}), ElementsAre("||a\nb\nc\nd", "||"));
}

// Random bytes from a small alphabet reach every state; whatever the cut, the events are the same.
TEST(SseParser, SurvivesRandomStreamsCutAnywhere) {
  std::mt19937 random(20261130);
  const std::string_view alphabet = "da:t \r\n\r\n0id\xEF\xBB\xBF";
  for (int round = 0; round < 3000; ++round) {
    std::string stream;
    const std::size_t size = random() % 60;
    for (std::size_t i = 0; i < size; ++i) {
      if (random() % 6 == 0) stream += "data:";
      stream += alphabet[random() % alphabet.size()];
    }
    const std::size_t cut = stream.empty() ? 0 : random() % stream.size();
    const std::string_view view = stream;
    EXPECT_EQ(parse({view.substr(0, cut), view.substr(cut)}), parse({view})) << "round " << round;
  }
}

}  // namespace
}  // namespace spud::http
