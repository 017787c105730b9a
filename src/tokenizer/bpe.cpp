// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe.hpp"

#include <bit>

#include "formats/model_file.hpp"
#include "tokenizer/byte_level.hpp"
#include "tokenizer/merge_queue.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/utf8.hpp"
#include "tokenizer/vocabulary_tokenizer.hpp"

namespace spud::tokenizer {
namespace {

constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

struct Merge {
  std::uint32_t rank = 0;
  TokenId token = kNoToken;
};

// Pair of tokens -> merge; open addressing, filled once. Immutable afterwards.
class MergeTable {
 public:
  explicit MergeTable(std::size_t count) : slots_(std::bit_ceil(count * 2 + 2)) {}

  // The first rank of a pair wins: a repeated merge cannot be reached.
  void insert(TokenId left, TokenId right, Merge merge) {
    Slot& slot = slots_[locate(key_of(left, right))];
    if (slot.merge.token == kNoToken) slot = {key_of(left, right), merge};
  }
  const Merge* find(TokenId left, TokenId right) const noexcept {
    const Slot& slot = slots_[locate(key_of(left, right))];
    return slot.merge.token == kNoToken ? nullptr : &slot.merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;
  };
  static std::uint64_t key_of(TokenId left, TokenId right) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  // The slot that holds the key, or the free one where it belongs.
  std::size_t locate(std::uint64_t key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = key * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    std::size_t i = hash & mask;
    while (slots_[i].merge.token != kNoToken && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }
  std::vector<Slot> slots_;
};

Result<MergeTable> load_merges(const formats::Metadata& metadata, const Vocabulary& vocabulary) {
  const std::vector<std::string>* lines = metadata.find_strings(kMergesKey);
  if (lines == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "the model has no '{}' (an array of strings); its tokenizer kind 'gpt2' needs them",
                kMergesKey);
  }
  MergeTable table(lines->size());
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const std::string_view line = (*lines)[i];
    // From the second byte on: a merge's left side is not empty, but may be a space itself.
    const std::size_t space = line.find(' ', 1);
    const auto side = [&](std::string_view text) -> Result<TokenId> {
      const TokenId id = vocabulary.find(text);
      if (id != kNoToken) return id;
      return fail(ErrorCode::kInvalidArgument, "merge {} '{}' names '{}', which is not a token", i,
                  to_valid_utf8(line.substr(0, 80)), to_valid_utf8(text.substr(0, 80)));
    };
    if (space == std::string_view::npos || space + 1 == line.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  "merge {} '{}' is not two tokens with a space between", i,
                  to_valid_utf8(line.substr(0, 80)));
    }
    SPUD_TRY(const TokenId left, side(line.substr(0, space)));
    SPUD_TRY(const TokenId right, side(line.substr(space + 1)));
    SPUD_TRY(const TokenId merged,
             side(std::string(line.substr(0, space)) + std::string(line.substr(space + 1))));
    // A merge that makes a control token would let plain text become one.
    if (vocabulary.is_special(merged)) continue;
    table.insert(left, right, {static_cast<std::uint32_t>(i), merged});
  }
  return table;
}

class BpeTokenizer final : public VocabularyTokenizer {
 public:
  BpeTokenizer(Vocabulary vocabulary, AffixOptions affix,
               std::unique_ptr<const PreTokenizer> pre_tokenizer, MergeTable merges)
      : VocabularyTokenizer(std::move(vocabulary), affix),
        pre_tokenizer_(std::move(pre_tokenizer)),
        merges_(std::move(merges)) {}

  std::string_view kind() const noexcept override { return "gpt2"; }
  std::string_view pre_tokenizer() const noexcept override { return pre_tokenizer_->spec().name; }

 protected:
  Result<void> encode_plain(std::string_view text, std::vector<TokenId>& out) const override {
    SPUD_TRY(const std::vector<std::size_t> ends, pre_tokenizer_->split(text));
    std::vector<MergeSymbol> symbols;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      encode_word(text.substr(begin, end - begin), symbols, out);
      begin = end;
    }
    return {};
  }

 private:
  void encode_word(std::string_view word, std::vector<MergeSymbol>& symbols,
                   std::vector<TokenId>& out) const {
    if (pre_tokenizer_->spec().ignore_merges && take_whole(word, out)) return;
    symbols.clear();
    for (std::size_t i = 0; i < word.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      symbols.push_back({.begin = index,
                         .length = 1,
                         .token = vocabulary().byte_token(static_cast<std::uint8_t>(word[i])),
                         .previous = index - 1,
                         .next = i + 1 == word.size() ? -1 : index + 1});
    }
    // Most words are short: looking through them for every merge beats keeping a heap.
    if (word.size() <= kShortWord) {
      merge_short(symbols);
    } else {
      merge_symbols<std::uint32_t>(symbols, [this](const MergeSymbol& a, const MergeSymbol& b) {
        const Merge* merge = find_merge(a.token, b.token);
        return merge == nullptr ? std::nullopt
                                : std::optional(std::pair(merge->rank, merge->token));
      });
    }
    for (const MergeSymbol& symbol : symbols) {
      if (symbol.length > 0 && symbol.token != kNoToken) out.push_back(symbol.token);
    }
  }

  const Merge* find_merge(TokenId left, TokenId right) const noexcept {
    return left == kNoToken || right == kNoToken ? nullptr : merges_.find(left, right);
  }

  void merge_short(std::vector<MergeSymbol>& symbols) const {
    while (true) {
      const Merge* best = nullptr;
      std::size_t best_at = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const Merge* merge = find_merge(symbols[i].token, symbols[i + 1].token);
        if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
          best = merge;
          best_at = i;
        }
      }
      if (best == nullptr) return;
      symbols[best_at].token = best->token;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
    }
  }

  bool take_whole(std::string_view word, std::vector<TokenId>& out) const {
    if (word.size() > vocabulary().max_token_bytes()) return false;
    std::string text;  // as the vocabulary writes it
    for (const char c : word) utf8_append(byte_to_code_point(static_cast<std::uint8_t>(c)), text);
    const TokenId id = vocabulary().find_plain(text);
    if (id == kNoToken) return false;
    out.push_back(id);
    return true;
  }

  static constexpr std::size_t kShortWord = 24;

  std::unique_ptr<const PreTokenizer> pre_tokenizer_;
  MergeTable merges_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_bpe(const formats::Metadata& metadata) {
  const std::string* name = metadata.find_string("tokenizer.ggml.pre");
  SPUD_TRY(auto pre_tokenizer, PreTokenizer::create(name == nullptr ? "default" : *name));
  SPUD_TRY(Vocabulary vocabulary, Vocabulary::load(metadata, /*byte_level=*/true));
  SPUD_TRY(MergeTable merges, load_merges(metadata, vocabulary));
  SPUD_TRY(const AffixOptions affix,
           load_affix_options(metadata, vocabulary, {.add_bos = pre_tokenizer->spec().add_bos}));
  return std::make_shared<const BpeTokenizer>(std::move(vocabulary), affix,
                                              std::move(pre_tokenizer), std::move(merges));
}

}  // namespace spud::tokenizer
