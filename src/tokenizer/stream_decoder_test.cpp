// SPDX-License-Identifier: Apache-2.0
// The streaming decoder against the whole text, cut at every byte.
#include <gtest/gtest.h>

#include <random>

#include "tokenizer/test_vocabulary.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/utf8.hpp"

namespace spud::tokenizer {
namespace {

// A tokenizer whose tokens are whatever byte strings a test needs.
class ByteStrings final : public Tokenizer {
 public:
  explicit ByteStrings(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}
  Result<std::vector<TokenId>> encode(std::string_view, EncodeOptions) const override { return {}; }
  Result<std::vector<TokenId>> encode_with_literals(std::string_view, std::span<const TextRange>,
                                                    EncodeOptions) const override {
    return {};
  }
  std::string_view token_bytes(TokenId id, bool) const noexcept override {
    return tokens_[static_cast<std::size_t>(id)];
  }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id, true);
    return text;
  }
  std::size_t vocabulary_size() const noexcept override { return tokens_.size(); }
  std::size_t longest_token_bytes() const noexcept override { return 1; }
  bool is_special(TokenId) const noexcept override { return false; }
  bool is_end_of_generation(TokenId) const noexcept override { return false; }
  std::optional<TokenId> bos() const noexcept override { return std::nullopt; }
  std::optional<TokenId> eos() const noexcept override { return std::nullopt; }
  bool adds_bos() const noexcept override { return false; }
  std::optional<TokenId> find_token(std::string_view) const noexcept override {
    return std::nullopt;
  }
  std::string_view kind() const noexcept override { return "test"; }
  std::string_view pre_tokenizer() const noexcept override { return ""; }

 private:
  std::vector<std::string> tokens_;
};

bool is_valid_utf8(std::string_view text) { return to_valid_utf8(text) == text; }

// Streams `parts`; every piece must be valid UTF-8 by itself.
std::string stream(const std::vector<std::string>& parts) {
  const ByteStrings tokenizer(parts);
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string piece = decoder.push(static_cast<TokenId>(i));
    EXPECT_TRUE(is_valid_utf8(piece));
    out += piece;
  }
  return out + decoder.finish();
}

std::vector<std::string> cut_at(const std::string& text, std::size_t a, std::size_t b) {
  return {text.substr(0, a), text.substr(a, b - a), text.substr(b)};
}

TEST(StreamDecoder, EveryCutOfEveryTextGivesTheWholeText) {
  const std::string texts[] = {
      "aé你🙂z",
      "\xF0\x9F\x99",                      // ends inside a character
      "a\xFFz\xC0\xAF\xE2\x28\xA1",        // never valid
      "\xE2\x82\xE2\x82\xAC\xF0\x90\x41",  // cut short by another
      "\xED\xA0\x80\xF4\x90\x80\x80",      // surrogate, beyond U+10FFFF
      "\xF0\x80\x80\xAF\xE0\x80\xAF",      // overlong
  };
  for (const std::string& text : texts) {
    const std::string whole = to_valid_utf8(text);
    for (std::size_t a = 0; a <= text.size(); ++a) {
      for (std::size_t b = a; b <= text.size(); ++b) {
        EXPECT_EQ(stream(cut_at(text, a, b)), whole) << a << ' ' << b;
      }
    }
  }
}

TEST(StreamDecoder, RandomBytesOneByOneGiveTheWholeText) {
  std::mt19937 random(11);
  const std::string lead = "\xC3\xE2\xF0\xED\xF4\x80\x9F\xBF\xFF!";
  for (int round = 0; round < 500; ++round) {
    std::string text;
    std::vector<std::string> bytes;
    for (int i = 0; i < 12; ++i) {
      text.push_back(lead[random() % lead.size()]);
      bytes.emplace_back(1, text.back());
    }
    EXPECT_EQ(stream(bytes), to_valid_utf8(text));
  }
}

TEST(StreamDecoder, ReplacementsAreThoseOfPython) {
  // b"...".decode("utf-8", "replace")
  EXPECT_EQ(to_valid_utf8("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xF0\x9F\x41"), "\uFFFDA");
  EXPECT_EQ(to_valid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(StreamDecoder, HoldsNothingBackThatIsComplete) {
  const ByteStrings tokenizer({"\xF0\x9F", "\x99", "\x82!", "\xE2"});
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0), "");
  EXPECT_EQ(decoder.push(1), "");
  EXPECT_EQ(decoder.push(2), "🙂!");
  EXPECT_EQ(decoder.push(3), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(Utf8, EveryCodePointGoesAndComesBack) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    std::string text;
    utf8_append(code_point, text);
    const Utf8Step step = utf8_step(text);
    ASSERT_EQ(step.kind, Utf8Kind::kValid);
    ASSERT_EQ(step.length, text.size());
    ASSERT_EQ(utf8_decode(text), code_point);
  }
}

}  // namespace
}  // namespace spud::tokenizer
