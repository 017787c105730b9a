// SPDX-License-Identifier: Apache-2.0
// A tokenizer for tests: one token per byte, then <|start|>, <|end|> (ends a generation) and
// <|bos|>. Its texts and counts can be worked out by hand.
#pragma once

#include <algorithm>

#include "tokenizer/tokenizer.hpp"

namespace spud::gateway::testing {

inline constexpr tokenizer::TokenId kStartToken = 256;
inline constexpr tokenizer::TokenId kEndToken = 257;
inline constexpr tokenizer::TokenId kBosToken = 258;

// Immutable; thread-safe.
class ByteTokenizer final : public tokenizer::Tokenizer {
 public:
  ByteTokenizer();
  Result<std::vector<tokenizer::TokenId>> encode(std::string_view text,
                                                 tokenizer::EncodeOptions options) const override;
  Result<std::vector<tokenizer::TokenId>> encode_with_literals(
      std::string_view text, std::span<const tokenizer::TextRange> literal,
      tokenizer::EncodeOptions options) const override;
  std::string_view token_bytes(tokenizer::TokenId id, bool render_special) const noexcept override;
  std::string decode(std::span<const tokenizer::TokenId> ids, bool render_special) const override;
  std::size_t vocabulary_size() const noexcept override { return texts_.size(); }
  std::size_t longest_token_bytes() const noexcept override {
    return std::ranges::max(texts_, {}, &std::string::size).size();
  }
  bool is_special(tokenizer::TokenId id) const noexcept override { return id >= kStartToken; }
  bool is_end_of_generation(tokenizer::TokenId id) const noexcept override {
    return id == kEndToken;
  }
  std::optional<tokenizer::TokenId> bos() const noexcept override { return kBosToken; }
  std::optional<tokenizer::TokenId> eos() const noexcept override { return kEndToken; }
  bool adds_bos() const noexcept override { return false; }
  std::optional<tokenizer::TokenId> find_token(std::string_view text) const noexcept override;
  std::string_view kind() const noexcept override { return "bytes"; }
  std::string_view pre_tokenizer() const noexcept override { return ""; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace spud::gateway::testing
