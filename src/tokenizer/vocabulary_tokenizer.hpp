// SPDX-License-Identifier: Apache-2.0
// What all kinds of tokenizers share: special tokens are cut out, BOS and EOS are added, ids become
// bytes. A kind only says how a stretch of plain text becomes ids.
#pragma once

#include "tokenizer/special_tokens.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/vocabulary.hpp"

namespace spud::tokenizer {

struct AffixOptions {
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  // a stretch at the start, or after a token, gets a space in front
};

class VocabularyTokenizer : public Tokenizer {
 public:
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options) const override;
  Result<std::vector<TokenId>> encode_with_literals(std::string_view text,
                                                    std::span<const TextRange> literal,
                                                    EncodeOptions options) const override;
  std::string_view token_bytes(TokenId id, bool render_special) const noexcept override;
  std::string decode(std::span<const TokenId> ids, bool render_special) const override;
  std::size_t vocabulary_size() const noexcept override { return vocabulary_.size(); }
  std::size_t longest_token_bytes() const noexcept override { return longest_token_bytes_; }
  bool is_special(TokenId id) const noexcept override;
  bool is_end_of_generation(TokenId id) const noexcept override;
  std::optional<TokenId> bos() const noexcept override { return vocabulary_.bos(); }
  std::optional<TokenId> eos() const noexcept override { return vocabulary_.eos(); }
  bool adds_bos() const noexcept override { return affix_.add_bos; }
  std::optional<TokenId> find_token(std::string_view text) const noexcept override;

 protected:
  VocabularyTokenizer(Vocabulary vocabulary, AffixOptions affix);
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  // Appends the ids of plain text to `out`.
  [[nodiscard]] virtual Result<void> encode_plain(std::string_view text,
                                                  std::vector<TokenId>& out) const = 0;

 private:
  Vocabulary vocabulary_;
  SpecialTokens special_;
  AffixOptions affix_;
  std::size_t longest_token_bytes_ = 1;
};

// Reads add_bos_token, add_eos_token and add_space_prefix over the kind's defaults.
// kInvalidArgument when one asks for a token the model does not name.
[[nodiscard]] Result<AffixOptions> load_affix_options(const formats::Metadata& metadata,
                                                      const Vocabulary& vocabulary,
                                                      AffixOptions defaults);

}  // namespace spud::tokenizer
