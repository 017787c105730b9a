// SPDX-License-Identifier: Apache-2.0
// Small vocabularies for the tests, as the metadata of a model would hold them.
#pragma once

#include <string>
#include <vector>

#include "formats/model_file.hpp"
#include "tokenizer/byte_level.hpp"
#include "tokenizer/vocabulary.hpp"

namespace spud::tokenizer::testing_support {

inline formats::MetadataValue text_value(std::string text) {
  formats::MetadataValue value;
  value.value = std::move(text);
  return value;
}
template <typename T>
formats::MetadataValue scalar_value(T scalar) {
  formats::MetadataValue value;
  value.value = scalar;
  return value;
}
template <typename T>
formats::MetadataValue array_value(std::vector<T> items) {
  formats::MetadataArray array;
  array.values = std::move(items);
  formats::MetadataValue value;
  value.value = std::move(array);
  return value;
}

struct TinyModel {
  std::string kind = "gpt2";
  std::string pre = "gpt2";
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;

  TokenId add(std::string token, TokenType type = TokenType::kNormal, float score = 0) {
    tokens.push_back(std::move(token));
    types.push_back(static_cast<std::int32_t>(type));
    scores.push_back(score);
    return static_cast<TokenId>(tokens.size()) - 1;
  }
  // "a b": also adds the token "ab".
  TokenId add_merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right);
  }
  formats::Metadata metadata() const {
    formats::Metadata metadata;
    metadata.set("tokenizer.ggml.model", text_value(kind));
    if (kind == "gpt2") {
      metadata.set("tokenizer.ggml.pre", text_value(pre));
      metadata.set("tokenizer.ggml.merges", array_value(merges));
    } else {
      metadata.set("tokenizer.ggml.scores", array_value(scores));
    }
    metadata.set("tokenizer.ggml.tokens", array_value(tokens));
    metadata.set("tokenizer.ggml.token_type", array_value(types));
    return metadata;
  }
};

// All 256 bytes, a few merges, <s> </s> <|x|> and the user-defined "[[u]]".
inline TinyModel tiny_bpe() {
  TinyModel model;
  for (unsigned byte = 0; byte < 256; ++byte) {
    model.add(byte_to_text(static_cast<std::uint8_t>(byte)));
  }
  model.add_merge("l", "l");
  model.add_merge("h", "e");
  model.add_merge("he", "ll");
  model.add_merge("hell", "o");
  model.add_merge("\xC4\xA0", "hello");  // the code of a space
  model.add_merge("a", "a");
  model.add_merge("aa", "aa");
  model.add("<s>", TokenType::kControl);
  model.add("<|x|>", TokenType::kControl);
  model.add("[[u]]", TokenType::kUserDefined);
  return model;
}

// Bytes, letters, a few pieces. Scores are chosen so that longer pieces are better.
inline TinyModel tiny_sentencepiece() {
  TinyModel model;
  model.kind = "llama";
  model.add("<unk>", TokenType::kUnknown);
  model.add("<s>", TokenType::kControl);
  model.add("</s>", TokenType::kControl);
  for (unsigned byte = 0; byte < 256; ++byte) {
    model.add(fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  }
  for (const char* piece : {"\xE2\x96\x81", "h", "e", "l", "o", "w", "r", "d"}) {
    model.add(piece, TokenType::kNormal, -100);
  }
  model.add("he", TokenType::kNormal, -3);
  model.add("ll", TokenType::kNormal, -2);
  model.add("llo", TokenType::kNormal, -4);
  model.add("hello", TokenType::kNormal, -1);
  model.add("\xE2\x96\x81hello", TokenType::kNormal, -0.5);
  model.add("[[u]]", TokenType::kUserDefined);
  return model;
}

}  // namespace spud::tokenizer::testing_support
