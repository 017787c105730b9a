// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/sentencepiece.hpp"

#include "formats/model_file.hpp"
#include "tokenizer/merge_queue.hpp"
#include "tokenizer/utf8.hpp"
#include "tokenizer/vocabulary_tokenizer.hpp"

namespace spud::tokenizer {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581

std::string escape_spaces(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      escaped += kSpaceSymbol;
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

class SentencePieceTokenizer final : public VocabularyTokenizer {
 public:
  SentencePieceTokenizer(Vocabulary vocabulary, AffixOptions affix)
      : VocabularyTokenizer(std::move(vocabulary), affix) {}

  std::string_view kind() const noexcept override { return "llama"; }
  std::string_view pre_tokenizer() const noexcept override { return ""; }

 protected:
  Result<void> encode_plain(std::string_view plain, std::vector<TokenId>& out) const override {
    const std::string text = escape_spaces(plain);
    if (text.size() > kMaxBytes) {
      return fail(ErrorCode::kInvalidArgument,
                  "the text has {} bytes with its spaces written out, more than the limit of {}",
                  text.size(), kMaxBytes);
    }
    std::vector<MergeSymbol> symbols = characters(text);
    // The heap wants the smallest first, scores say the greatest.
    merge_symbols<float>(symbols,
                         [&](const MergeSymbol& a,
                             const MergeSymbol& b) -> std::optional<std::pair<float, TokenId>> {
                           const TokenId token =
                               vocabulary().find_plain(piece(text, a.begin, a.length + b.length));
                           if (token == kNoToken) return std::nullopt;
                           return std::pair(-vocabulary().score(token), token);
                         });
    for (const MergeSymbol& symbol : symbols) {
      if (symbol.length == 0) continue;
      if (symbol.token != kNoToken) {
        out.push_back(symbol.token);
      } else {
        SPUD_TRY(fall_back(piece(text, symbol.begin, symbol.length), out));
      }
    }
    return {};
  }

 private:
  static constexpr std::size_t kMaxBytes = 0x7FFFFFFF;

  static std::string_view piece(std::string_view text, std::int32_t begin, std::int32_t length) {
    return text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(length));
  }

  std::vector<MergeSymbol> characters(std::string_view text) const {
    std::vector<MergeSymbol> symbols;
    symbols.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
      const Utf8Step step = utf8_step(text.substr(i));
      const std::size_t length = step.kind == Utf8Kind::kValid ? step.length : 1;
      const auto index = static_cast<std::int32_t>(symbols.size());
      symbols.push_back({.begin = static_cast<std::int32_t>(i),
                         .length = static_cast<std::int32_t>(length),
                         .token = vocabulary().find_plain(text.substr(i, length)),
                         .previous = index - 1,
                         .next = i + length == text.size() ? -1 : index + 1});
      i += length;
    }
    return symbols;
  }

  Result<void> fall_back(std::string_view character, std::vector<TokenId>& out) const {
    bool has_bytes = true;
    for (const char c : character) {
      has_bytes = has_bytes && vocabulary().byte_token(static_cast<std::uint8_t>(c)) != kNoToken;
    }
    if (has_bytes) {
      for (const char c : character) {
        out.push_back(vocabulary().byte_token(static_cast<std::uint8_t>(c)));
      }
      return {};
    }
    if (!vocabulary().unknown()) {
      return fail(ErrorCode::kInvalidArgument,
                  "the model has no token for '{}', no byte tokens and no unknown token",
                  to_valid_utf8(character));
    }
    out.push_back(*vocabulary().unknown());
    return {};
  }
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_sentencepiece(const formats::Metadata& metadata) {
  SPUD_TRY(Vocabulary vocabulary, Vocabulary::load(metadata, /*byte_level=*/false));
  if (!vocabulary.has_scores()) {
    return fail(ErrorCode::kInvalidArgument,
                "the model has no 'tokenizer.ggml.scores'; its tokenizer kind 'llama' needs them");
  }
  SPUD_TRY(const AffixOptions affix,
           load_affix_options(metadata, vocabulary, {.add_bos = true, .add_space_prefix = true}));
  return std::make_shared<const SentencePieceTokenizer>(std::move(vocabulary), affix);
}

}  // namespace spud::tokenizer
