// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tokenizer/test_vocabulary.hpp"
#include "tokenizer/utf8.hpp"

namespace spud::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::TinyModel;

std::shared_ptr<const Tokenizer> make(const formats::Metadata& metadata) {
  auto made = Tokenizer::create(metadata);
  EXPECT_TRUE(made) << made.error().message();
  return made ? *made : nullptr;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text,
                                EncodeOptions options = {}) {
  const auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids) << ids.error().message();
  std::vector<std::string> out;
  for (const TokenId id : ids.value_or(std::vector<TokenId>())) {
    out.emplace_back(tokenizer.token_bytes(id, /*render_special=*/true));
  }
  return out;
}

TEST(Bpe, AppliesMergesInOrderInsideWords) {
  const auto tokenizer = make(testing_support::tiny_bpe().metadata());
  EXPECT_THAT(pieces(*tokenizer, "hello hello"), ElementsAre("hello", " hello"));
  EXPECT_THAT(pieces(*tokenizer, "hel"), ElementsAre("he", "l"));
  EXPECT_THAT(pieces(*tokenizer, "aaaaaaa"), ElementsAre("aaaa", "aa", "a"));
  EXPECT_THAT(pieces(*tokenizer, ""), ElementsAre());
}

TEST(Bpe, ControlTokensNeedParseSpecialAndUserDefinedOnesDoNot) {
  const auto tokenizer = make(testing_support::tiny_bpe().metadata());
  EXPECT_THAT(pieces(*tokenizer, "a<|x|>[[u]]", {.parse_special = true}),
              ElementsAre("a", "<|x|>", "[[u]]"));
  const auto plain = pieces(*tokenizer, "a<|x|>[[u]]");
  EXPECT_EQ(plain.size(), 7u);
  EXPECT_EQ(plain.back(), "[[u]]");
  const TokenId control = *tokenizer->find_token("<|x|>");
  EXPECT_TRUE(tokenizer->is_special(control));
  EXPECT_EQ(tokenizer->token_bytes(control, false), "");
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->find_token("[[u]]")));
}

TEST(Bpe, LiteralRangesHoldNoControlTokenNorAcrossTheirBorder) {
  const auto tokenizer = make(testing_support::tiny_bpe().metadata());
  const std::string text = "<|x|><|x|><|x|>";
  const auto count = [&](std::vector<TextRange> literal) {
    const auto ids = tokenizer->encode_with_literals(text, literal, {.parse_special = true});
    return std::ranges::count(*ids, *tokenizer->find_token("<|x|>"));
  };
  EXPECT_EQ(count({}), 3);
  EXPECT_EQ(count({{5, 10}}), 2);
  EXPECT_EQ(count({{4, 6}}), 1);
  EXPECT_EQ(count({{0, 15}}), 0);
  EXPECT_EQ(count({{0, 1}, {14, 15}}), 1);
}

TEST(Bpe, EveryByteStringComesBack) {
  const auto tokenizer = make(testing_support::tiny_bpe().metadata());
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text.push_back(static_cast<char>(random()));
    const auto ids = tokenizer->encode(text, {});
    ASSERT_TRUE(ids);
    EXPECT_EQ(tokenizer->decode(*ids, true), text);
  }
}

TEST(Bpe, AMegabyteWithoutSpacesIsNoProblem) {
  const auto tokenizer = make(testing_support::tiny_bpe().metadata());
  const std::string text(1u << 20, 'a');
  const auto ids = tokenizer->encode(text, {});
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->size(), text.size() / 4);
  const auto brackets = tokenizer->encode(std::string(1u << 20, '['), {.parse_special = true});
  ASSERT_TRUE(brackets);
  EXPECT_EQ(brackets->size(), 1u << 20);
}

// Words up to 24 bytes take another path through the merges than longer ones.
TEST(Bpe, ShortAndLongWordsMergeAlike) {
  TinyModel model;
  for (unsigned byte = 0; byte < 256; ++byte) {
    model.add(byte_to_text(static_cast<std::uint8_t>(byte)));
  }
  std::mt19937 random(3);
  std::vector<std::string> known = {"a", "b", "c"};
  for (int i = 0; i < 60; ++i) {
    const std::string left = known[random() % known.size()];
    const std::string right = known[random() % known.size()];
    if (std::ranges::find(known, left + right) != known.end()) continue;
    model.add_merge(left, right);
    known.push_back(left + right);
  }
  const auto tokenizer = make(model.metadata());
  for (int round = 0; round < 300; ++round) {
    std::string word;
    for (int i = 0; i < 24; ++i) word.push_back(static_cast<char>('a' + random() % 3));
    // 'z' merges with nothing: what stands before it merges as if alone, by the long path.
    const auto alone = pieces(*tokenizer, word);
    auto with_z = pieces(*tokenizer, word + "z");
    ASSERT_EQ(with_z.back(), "z");
    with_z.pop_back();
    EXPECT_EQ(alone, with_z) << word;
  }
}

TEST(Bpe, BosOnlyWhenTheModelSaysSo) {
  TinyModel model = testing_support::tiny_bpe();
  formats::Metadata metadata = model.metadata();
  metadata.set("tokenizer.ggml.bos_token_id",
               testing_support::scalar_value(static_cast<std::uint32_t>(model.tokens.size() - 3)));
  EXPECT_THAT(pieces(*make(metadata), "a", {.add_special = true}), ElementsAre("a"));
  metadata.set("tokenizer.ggml.add_bos_token", testing_support::scalar_value(true));
  EXPECT_THAT(pieces(*make(metadata), "a", {.add_special = true}), ElementsAre("<s>", "a"));
  EXPECT_THAT(pieces(*make(metadata), "a"), ElementsAre("a"));
}

TEST(Bpe, AMergeNeverMakesAControlToken) {
  TinyModel model = testing_support::tiny_bpe();
  model.add_merge("<", "!");
  model.types.back() = static_cast<std::int32_t>(TokenType::kControl);
  EXPECT_THAT(pieces(*make(model.metadata()), "<!"), ElementsAre("<", "!"));
}

TEST(SentencePiece, MergesTheBestScoreFirst) {
  formats::Metadata metadata = testing_support::tiny_sentencepiece().metadata();
  metadata.set("tokenizer.ggml.add_space_prefix", testing_support::scalar_value(false));
  const auto tokenizer = make(metadata);
  EXPECT_THAT(pieces(*tokenizer, "hello hello"), ElementsAre("hello", " hello"));
  EXPECT_THAT(pieces(*tokenizer, "lllo"), ElementsAre("ll", "l", "o"));
  EXPECT_THAT(pieces(*tokenizer, "hé"), ElementsAre("h", "\xC3", "\xA9"));
  EXPECT_THAT(pieces(*tokenizer, "\xFFh"), ElementsAre("\xFF", "h"));
}

TEST(SentencePiece, TheSpaceInFrontIsAddedAndTakenAway) {
  formats::Metadata metadata = testing_support::tiny_sentencepiece().metadata();
  metadata.set("tokenizer.ggml.bos_token_id", testing_support::scalar_value(std::uint32_t{1}));
  const auto tokenizer = make(metadata);
  EXPECT_TRUE(tokenizer->adds_bos());
  const auto ids = tokenizer->encode("hello hello", {.add_special = true});
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->size(), 3u);
  EXPECT_EQ(tokenizer->decode(*ids, false), "hello hello");
  StreamDecoder decoder(*tokenizer);
  std::string streamed;
  for (const TokenId id : *ids) streamed += decoder.push(id);
  EXPECT_EQ(streamed + decoder.finish(), "hello hello");
  StreamDecoder continuing(*tokenizer, false, /*continues_text=*/true);
  EXPECT_EQ(continuing.push((*ids)[1]), " hello");
}

TEST(SentencePiece, WithoutByteTokensTheUnknownTokenStandsIn) {
  TinyModel model;
  model.kind = "llama";
  model.add("<unk>", TokenType::kUnknown);
  model.add("a");
  formats::Metadata metadata = model.metadata();
  metadata.set("tokenizer.ggml.add_space_prefix", testing_support::scalar_value(false));
  const auto refused = make(metadata)->encode("ab", {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("no token for 'b'"));
  metadata.set("tokenizer.ggml.unknown_token_id", testing_support::scalar_value(std::uint32_t{0}));
  EXPECT_THAT(pieces(*make(metadata), "ab"), ElementsAre("a", "<unk>"));
}

TEST(SentencePiece, AMegabyteIsNoProblem) {
  const auto tokenizer = make(testing_support::tiny_sentencepiece().metadata());
  std::string text;
  while (text.size() < (1u << 20)) text += "hellohelllo";
  const auto ids = tokenizer->encode(text, {});
  ASSERT_TRUE(ids);
  EXPECT_EQ(tokenizer->decode(*ids, false), text);
}

TEST(Tokenizer, IdsOutOfRangeAreNothing) {
  const auto tokenizer = make(testing_support::tiny_bpe().metadata());
  for (const TokenId id : {-1, 1'000'000, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer->token_bytes(id, true), "");
    EXPECT_FALSE(tokenizer->is_special(id));
    EXPECT_FALSE(tokenizer->is_end_of_generation(id));
    StreamDecoder decoder(*tokenizer);
    EXPECT_EQ(decoder.push(id), "");
  }
}

struct BadModel {
  std::string_view name;
  void (*damage)(TinyModel&, formats::Metadata&);
  bool sentencepiece;
  std::string_view message;
};
void PrintTo(const BadModel& bad, std::ostream* out) { *out << bad.name; }

class HostileVocabulary : public testing::TestWithParam<BadModel> {};

TEST_P(HostileVocabulary, IsOneClearError) {
  TinyModel model = GetParam().sentencepiece ? testing_support::tiny_sentencepiece()
                                             : testing_support::tiny_bpe();
  formats::Metadata unchanged;
  GetParam().damage(model, unchanged);
  formats::Metadata metadata = model.metadata();
  for (const auto& entry : unchanged.entries()) metadata.set(entry.key, entry.value);
  const auto made = Tokenizer::create(metadata);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().code(), ErrorCode::kInternal);
  EXPECT_THAT(made.error().message(), HasSubstr(GetParam().message));
}

using testing_support::array_value;
using testing_support::scalar_value;
using testing_support::text_value;

INSTANTIATE_TEST_SUITE_P(
    Cases, HostileVocabulary,
    testing::Values(
        BadModel{"unknown_kind", [](TinyModel& m, formats::Metadata&) { m.kind = "wordpiece"; },
                 false, "unknown tokenizer kind 'wordpiece'"},
        BadModel{"unknown_pre_tokenizer", [](TinyModel& m, formats::Metadata&) { m.pre = "smolm"; },
                 false, "did you mean 'smollm'"},
        BadModel{"duplicate_token", [](TinyModel& m, formats::Metadata&) { m.add("hello"); }, false,
                 "are both 'hello'"},
        BadModel{"empty_vocabulary",
                 [](TinyModel& m, formats::Metadata&) { m.tokens.clear(), m.types.clear(); }, false,
                 "is empty"},
        BadModel{"tokens_of_another_type",
                 [](TinyModel&, formats::Metadata& d) {
                   d.set("tokenizer.ggml.tokens", array_value(std::vector<float>{1, 2}));
                 },
                 false, "no 'tokenizer.ggml.tokens'"},
        BadModel{"merge_of_unknown_tokens",
                 [](TinyModel& m, formats::Metadata&) { m.merges.push_back("qq zz"); }, false,
                 "names 'qq'"},
        BadModel{"merge_into_unknown_token",
                 [](TinyModel& m, formats::Metadata&) { m.merges.push_back("a b"); }, false,
                 "names 'ab'"},
        BadModel{"merge_without_space",
                 [](TinyModel& m, formats::Metadata&) { m.merges.push_back("ab"); }, false,
                 "not two tokens"},
        BadModel{"merge_empty", [](TinyModel& m, formats::Metadata&) { m.merges.push_back(""); },
                 false, "not two tokens"},
        BadModel{"too_few_types", [](TinyModel& m, formats::Metadata&) { m.types.pop_back(); },
                 false, "entries for"},
        BadModel{"type_out_of_range", [](TinyModel& m, formats::Metadata&) { m.types[3] = 77; },
                 false, "token 3 has type 77"},
        BadModel{"too_few_scores", [](TinyModel& m, formats::Metadata&) { m.scores.pop_back(); },
                 true, "entries for"},
        BadModel{"score_not_a_number",
                 [](TinyModel& m, formats::Metadata&) { m.scores[5] = std::nanf(""); }, true,
                 "score NaN"},
        BadModel{"negative_byte_token",
                 [](TinyModel& m, formats::Metadata&) { m.tokens[3] = "<0x-1>"; }, true,
                 "token 3 '<0x-1>' is marked as a byte"},
        BadModel{"bos_out_of_range",
                 [](TinyModel&, formats::Metadata& d) {
                   d.set("tokenizer.ggml.bos_token_id", scalar_value(std::uint32_t{4'000'000'000}));
                 },
                 false, "must be a token id below"},
        BadModel{"eos_of_another_type",
                 [](TinyModel&, formats::Metadata& d) {
                   d.set("tokenizer.ggml.eos_token_id", text_value("</s>"));
                 },
                 false, "must be a token id below"},
        BadModel{"add_bos_without_bos",
                 [](TinyModel&, formats::Metadata& d) {
                   d.set("tokenizer.ggml.add_bos_token", scalar_value(true));
                 },
                 false, "is absent"},
        BadModel{"huge_special_token",
                 [](TinyModel& m, formats::Metadata&) {
                   m.add(std::string(5000, 'x'), TokenType::kControl);
                 },
                 false, "5000 bytes long"},
        BadModel{"huge_token",
                 [](TinyModel& m, formats::Metadata&) { m.add(std::string(100'000, 'x')); }, false,
                 "100000 bytes long"}),
    [](const auto& entry) { return std::string(entry.param.name); });

TEST(Tokenizer, NoMetadataAtAllIsAnError) { EXPECT_FALSE(Tokenizer::create(formats::Metadata())); }

}  // namespace
}  // namespace spud::tokenizer
