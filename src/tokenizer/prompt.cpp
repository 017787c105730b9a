// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/prompt.hpp"

namespace spud::tokenizer {

Result<std::vector<TokenId>> encode_prompt(const Tokenizer& tokenizer,
                                           std::span<const PromptPiece> pieces) {
  std::string text;
  std::vector<TextRange> literal;
  for (const PromptPiece& piece : pieces) {
    if (piece.from_user && !piece.text.empty()) {
      literal.push_back({text.size(), text.size() + piece.text.size()});
    }
    text += piece.text;
  }
  SPUD_TRY(std::vector<TokenId> ids,
           tokenizer.encode_with_literals(text, literal, {.parse_special = true}));
  if (tokenizer.adds_bos() && (ids.empty() || ids.front() != tokenizer.bos())) {
    ids.insert(ids.begin(), *tokenizer.bos());
  }
  return ids;
}

}  // namespace spud::tokenizer
