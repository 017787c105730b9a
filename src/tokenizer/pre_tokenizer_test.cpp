// SPDX-License-Identifier: Apache-2.0
// Splits worked out by hand from the published patterns.
#include "tokenizer/pre_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spud::tokenizer {
namespace {

using testing::ElementsAre;

std::vector<std::string> words(std::string_view name, std::string_view text) {
  const auto made = PreTokenizer::create(name);
  EXPECT_TRUE(made) << made.error().message();
  const auto ends = (*made)->split(text);
  EXPECT_TRUE(ends) << ends.error().message();
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (const std::size_t end : *ends) {
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return out;
}

TEST(PreTokenizer, Gpt2KeepsTheSpaceBeforeAWordAndLeavesTheOthers) {
  EXPECT_THAT(words("gpt2", "Hello  world's 123abc!!\n\nx"),
              ElementsAre("Hello", " ", " world", "'s", " 123", "abc", "!!", "\n", "\n", "x"));
  EXPECT_THAT(words("gpt2", "I'LL we're "), ElementsAre("I", "'", "LL", " we", "'re", " "));
  EXPECT_THAT(words("gpt2", ""), ElementsAre());
}

TEST(PreTokenizer, SmollmTakesDigitsOneByOneBeforeAllElse) {
  EXPECT_THAT(words("smollm", "a 12½ b"), ElementsAre("a", " ", "1", "2", "½", " b"));
  EXPECT_THAT(words("smollm", "x  7"), ElementsAre("x", "  ", "7"));
}

TEST(PreTokenizer, Llama3TakesThreeDigitsAndAnyCaseOfContractions) {
  EXPECT_THAT(
      words("llama-bpe", "We'LL pay $12345.67 now\n\n  ok"),
      ElementsAre("We", "'LL", " pay", " $", "123", "45", ".", "67", " now", "\n\n", " ", " ok"));
  EXPECT_THAT(words("llama3", "(abc) don't\r\n"), ElementsAre("(abc", ")", " don", "'t", "\r\n"));
  EXPECT_THAT(words("llama3", "a   b  "), ElementsAre("a", "  ", " b", "  "));
  EXPECT_THAT(words("llama3", "x;;\n\ny"), ElementsAre("x", ";;\n\n", "y"));
}

TEST(PreTokenizer, Qwen2TakesSingleDigits) {
  EXPECT_THAT(words("qwen2", "in 2024, don'T!\n"),
              ElementsAre("in", " ", "2", "0", "2", "4", ",", " don", "'T", "!\n"));
  EXPECT_THAT(words("qwen2", "你好,世界"), ElementsAre("你好", ",世界"));
}

TEST(PreTokenizer, Gpt4oSplitsAtChangesOfCase) {
  EXPECT_THAT(words("gpt-4o", "camelCase HTTPServer's"),
              ElementsAre("camel", "Case", " HTTPServer's"));
}

TEST(PreTokenizer, SpacesAreUnicodeSpaces) {
  EXPECT_THAT(words("llama3", "a\u00A0\u3000b"), ElementsAre("a", "\u00A0", "\u3000b"));
  // U+180E is no white space since Unicode 6.3.
  EXPECT_THAT(words("gpt2", "a \u180E b"), ElementsAre("a", " \u180E", " b"));
}

TEST(PreTokenizer, BytesThatAreNotTextStandAlone) {
  EXPECT_THAT(words("gpt2", "ab\xFF\xFE cd\xE2\x82"),
              ElementsAre("ab", "\xFF", "\xFE", " cd", "\xE2", "\x82"));
  EXPECT_THAT(words("gpt2", "\xED\xA0\x80"), ElementsAre("\xED", "\xA0", "\x80"));
}

TEST(PreTokenizer, AllKnownOnesCompileAndCoverTheText) {
  std::string text =
      "Mixed TEXT, it's 12345 \t\n\n  ünïcödé 你好 \u0661\u0662 🙂🙂 <|x|> \r\n end ";
  text += "\xF0\x9F";
  for (const PreTokenizerSpec& spec : builtin_pre_tokenizers()) {
    std::string joined;
    for (const std::string& word : words(spec.name, text)) {
      EXPECT_FALSE(word.empty()) << spec.name;
      joined += word;
    }
    EXPECT_EQ(joined, text) << spec.name;
  }
}

TEST(PreTokenizer, AMegabyteOfAnythingIsFast) {
  for (const PreTokenizerSpec& spec : builtin_pre_tokenizers()) {
    const auto made = PreTokenizer::create(spec.name);
    for (const std::string_view unit : {"a", "A", " ", "\n", "1", "!", "é", "'", " \n"}) {
      std::string text;
      while (text.size() < (1u << 18)) text += unit;
      const auto ends = (*made)->split(text);
      ASSERT_TRUE(ends) << spec.name << ": " << ends.error().message();
      EXPECT_EQ(ends->back(), text.size());
    }
  }
}

TEST(PreTokenizer, AnUnknownOneIsNamedWithTheKnown) {
  const auto made = PreTokenizer::create("lama3");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(made.error().message(), testing::HasSubstr("did you mean 'llama3'"));
}

}  // namespace
}  // namespace spud::tokenizer
