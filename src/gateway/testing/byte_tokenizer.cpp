// SPDX-License-Identifier: Apache-2.0
#include "gateway/testing/byte_tokenizer.hpp"

#include <algorithm>

namespace spud::gateway::testing {

using tokenizer::TokenId;

ByteTokenizer::ByteTokenizer() {
  for (int byte = 0; byte < 256; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
  texts_.insert(texts_.end(), {"<|start|>", "<|end|>", "<|bos|>"});
}

Result<std::vector<TokenId>> ByteTokenizer::encode(std::string_view text,
                                                   tokenizer::EncodeOptions options) const {
  return encode_with_literals(text, {}, options);
}

Result<std::vector<TokenId>> ByteTokenizer::encode_with_literals(
    std::string_view text, std::span<const tokenizer::TextRange> literal,
    tokenizer::EncodeOptions options) const {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < text.size();) {
    const bool is_literal = std::any_of(literal.begin(), literal.end(), [i](const auto& range) {
      return i >= range.begin && i < range.end;
    });
    TokenId token = static_cast<unsigned char>(text[i]);
    for (TokenId special = kStartToken; special <= kBosToken; ++special) {
      if (options.parse_special && !is_literal &&
          text.substr(i).starts_with(texts_[static_cast<std::size_t>(special)])) {
        token = special;
      }
    }
    tokens.push_back(token);
    i += texts_[static_cast<std::size_t>(token)].size();
  }
  return tokens;
}

std::string_view ByteTokenizer::token_bytes(TokenId id, bool render_special) const noexcept {
  if (id < 0 || static_cast<std::size_t>(id) >= texts_.size()) return "";
  if (is_special(id) && !render_special) return "";
  return texts_[static_cast<std::size_t>(id)];
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids, bool render_special) const {
  std::string out;
  for (const TokenId id : ids) out += token_bytes(id, render_special);
  return out;
}

std::optional<TokenId> ByteTokenizer::find_token(std::string_view text) const noexcept {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (texts_[i] == text) return static_cast<TokenId>(i);
  }
  return std::nullopt;
}

}  // namespace spud::gateway::testing
