// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/special_tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tokenizer/test_vocabulary.hpp"

namespace spud::tokenizer {
namespace {

Vocabulary vocabulary_of(const std::vector<std::string>& control,
                         const std::vector<std::string>& user_defined) {
  testing_support::TinyModel model;
  model.add("x");
  for (const std::string& text : control) model.add(text, TokenType::kControl);
  for (const std::string& text : user_defined) model.add(text, TokenType::kUserDefined);
  auto loaded = Vocabulary::load(model.metadata(), true);
  EXPECT_TRUE(loaded) << loaded.error().message();
  return *std::move(loaded);
}

std::string show(const Vocabulary& vocabulary, std::string_view text,
                 const std::vector<Fragment>& fragments) {
  std::string out;
  for (const Fragment& fragment : fragments) {
    const auto part = text.substr(fragment.begin, fragment.end - fragment.begin);
    out += fragment.token == kNoToken ? fmt::format("'{}'", part) : fmt::format("<{}>", part);
    if (fragment.token != kNoToken) {
      EXPECT_EQ(vocabulary.text(fragment.token), part);
    }
  }
  return out;
}

// The published order, one token after the other over the whole text.
std::vector<Fragment> reference_split(const Vocabulary& vocabulary, std::string_view text,
                                      bool parse_special) {
  std::vector<TokenId> order;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const bool control = vocabulary.type(id) == TokenType::kControl;
    if (vocabulary.type(id) == TokenType::kUserDefined || (control && parse_special)) {
      order.push_back(id);
    }
  }
  std::ranges::sort(order, [&](TokenId a, TokenId b) {
    const std::size_t size_a = vocabulary.text(a).size();
    const std::size_t size_b = vocabulary.text(b).size();
    return size_a != size_b ? size_a > size_b : a < b;
  });
  std::vector<Fragment> fragments = {{0, text.size(), kNoToken}};
  for (const TokenId id : order) {
    std::vector<Fragment> next;
    for (Fragment fragment : fragments) {
      while (fragment.token == kNoToken) {
        const auto part = text.substr(0, fragment.end);
        const std::size_t found = part.find(vocabulary.text(id), fragment.begin);
        if (found == std::string_view::npos) break;
        const std::size_t end = found + vocabulary.text(id).size();
        next.push_back({fragment.begin, found, kNoToken});
        next.push_back({found, end, id});
        fragment.begin = end;
      }
      next.push_back(fragment);
    }
    std::erase_if(next, [](const Fragment& f) { return f.begin == f.end; });
    fragments = std::move(next);
  }
  return fragments;
}

TEST(SpecialTokens, TheLongestOfTheWholeTextGoesFirst) {
  const Vocabulary vocabulary = vocabulary_of({"ab", "bcd", "<|a|>", "<|a|>b"}, {});
  const SpecialTokens special(vocabulary);
  EXPECT_EQ(show(vocabulary, "abcd", special.split("abcd", true, {})), "'a'<bcd>");
  EXPECT_EQ(show(vocabulary, "abab", special.split("abab", true, {})), "<ab><ab>");
  EXPECT_EQ(show(vocabulary, "<|a|>bc", special.split("<|a|>bc", true, {})), "<<|a|>b>'c'");
  EXPECT_EQ(show(vocabulary, "<|a|>bcd", special.split("<|a|>bcd", true, {})), "<<|a|>b>'cd'");
  EXPECT_EQ(show(vocabulary, "abcd", special.split("abcd", false, {})), "'abcd'");
  EXPECT_TRUE(special.split("", true, {}).empty());
}

TEST(SpecialTokens, AgreesWithTheTokenByTokenSearch) {
  std::mt19937 random(5);
  const auto word = [&](std::size_t longest) {
    std::string text;
    const std::size_t size = 1 + random() % longest;
    for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<char>('a' + random() % 2));
    return text;
  };
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> control;
    std::vector<std::string> user_defined;
    for (int i = 0; i < 6; ++i) {
      const std::string text = word(4);
      if (std::ranges::find(control, text) != control.end() ||
          std::ranges::find(user_defined, text) != user_defined.end()) {
        continue;
      }
      (i % 2 == 0 ? control : user_defined).push_back(text);
    }
    const Vocabulary vocabulary = vocabulary_of(control, user_defined);
    const SpecialTokens special(vocabulary);
    const std::string text = word(30);
    for (const bool parse : {false, true}) {
      EXPECT_EQ(show(vocabulary, text, special.split(text, parse, {})),
                show(vocabulary, text, reference_split(vocabulary, text, parse)))
          << text;
    }
  }
}

// What Hugging Face's tokenizers does with lstrip and rstrip.
TEST(SpecialTokens, AStrippingTokenTakesTheWhiteSpaceBesideItAlong) {
  testing_support::TinyModel model;
  model.add("x");
  const TokenId left = model.add("<l>", TokenType::kControl);
  const TokenId right = model.add("<r>", TokenType::kControl);
  const TokenId both = model.add("<b>", TokenType::kUserDefined);
  model.add("<n>", TokenType::kControl);
  auto metadata = model.metadata();
  metadata.set("tokenizer.ggml.lstrip_token_ids",
               testing_support::array_value(std::vector<std::int32_t>{both, left}));
  metadata.set("tokenizer.ggml.rstrip_token_ids",
               testing_support::array_value(std::vector<std::int32_t>{right, both}));
  const auto vocabulary = Vocabulary::load(metadata, true);
  ASSERT_TRUE(vocabulary) << vocabulary.error().message();
  const SpecialTokens special(*vocabulary);
  const auto shown = [&](std::string_view text, bool parse = true) {
    std::string out;
    for (const Fragment& f : special.split(text, parse, {})) {
      const auto part = text.substr(f.begin, f.end - f.begin);
      out += f.token == kNoToken ? fmt::format("'{}'", part) : fmt::format("[{}]", part);
    }
    return out;
  };
  EXPECT_EQ(shown("a \n<l> b"), "'a'[ \n<l>]' b'");
  EXPECT_EQ(shown("a <r>\t b"), "'a '[<r>\t ]'b'");
  EXPECT_EQ(shown(" <b> "), "[ <b> ]");
  EXPECT_EQ(shown("a <n> b"), "'a '[<n>]' b'");
  EXPECT_EQ(shown("<r>  <l>"), "[<r>  ][<l>]") << "what one has taken the next has not";
  EXPECT_EQ(shown("<n>  <l>"), "[<n>][  <l>]");
  EXPECT_EQ(shown("a\u3000\u00a0<l>"), "'a'[\u3000\u00a0<l>]") << "Unicode's white space";
  EXPECT_EQ(shown("a\u200b<l>"), "'a\u200b'[<l>]") << "a zero-width space is none";
  EXPECT_EQ(shown("\x80 <l>"), "'\x80'[ <l>]") << "ill-formed text stays";
  EXPECT_EQ(shown(" <l> <b> ", false), "' <l>'[ <b> ]") << "control tokens only where asked";
}

TEST(SpecialTokens, StripListsAreChecked) {
  testing_support::TinyModel model;
  model.add("x");
  for (const std::int32_t bad : {-1, 1}) {
    auto metadata = model.metadata();
    metadata.set("tokenizer.ggml.lstrip_token_ids",
                 testing_support::array_value(std::vector<std::int32_t>{bad}));
    const auto vocabulary = Vocabulary::load(metadata, true);
    ASSERT_FALSE(vocabulary);
    EXPECT_EQ(
        vocabulary.error().message(),
        fmt::format("'tokenizer.ggml.lstrip_token_ids' must hold token ids below 1, not {}", bad));
  }
}

TEST(SpecialTokens, ARunOfNewlinesWithTokensOfEveryLengthIsFast) {
  std::vector<std::string> runs;
  for (std::size_t i = 1; i <= 31; ++i) runs.emplace_back(i, '\n');
  const Vocabulary vocabulary = vocabulary_of({}, runs);
  const SpecialTokens special(vocabulary);
  const std::string text(1'000'000, '\n');
  const auto fragments = special.split(text, false, {});
  EXPECT_EQ(fragments.size(), (text.size() + 30) / 31);
}

}  // namespace
}  // namespace spud::tokenizer
