// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/vocabulary_tokenizer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "formats/model_file.hpp"

namespace spud::tokenizer {
namespace {

constexpr std::size_t kMaxTextBytes = std::numeric_limits<std::int32_t>::max();

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, AffixOptions affix)
    : vocabulary_(std::move(vocabulary)), special_(vocabulary_), affix_(affix) {
  for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string_view bytes = vocabulary_.bytes(static_cast<TokenId>(id));
    longest_token_bytes_ = std::max(longest_token_bytes_, bytes.size());
  }
}

Result<std::vector<TokenId>> VocabularyTokenizer::encode(std::string_view text,
                                                         EncodeOptions options) const {
  return encode_with_literals(text, {}, options);
}

Result<std::vector<TokenId>> VocabularyTokenizer::encode_with_literals(
    std::string_view text, std::span<const TextRange> literal, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    return fail(ErrorCode::kInvalidArgument, "the text has {} bytes, more than the limit of {}",
                text.size(), kMaxTextBytes);
  }
  std::vector<TokenId> ids;
  if (options.add_special && affix_.add_bos) ids.push_back(*vocabulary_.bos());
  bool after_token = true;  // also at the start
  for (const Fragment& fragment : special_.split(text, options.parse_special, literal)) {
    if (fragment.token != kNoToken) {
      ids.push_back(fragment.token);
      after_token = true;
      continue;
    }
    const std::string_view stretch = text.substr(fragment.begin, fragment.end - fragment.begin);
    if (affix_.add_space_prefix && after_token) {
      std::string prefixed(1, ' ');
      prefixed += stretch;
      SPUD_TRY(encode_plain(prefixed, ids));
    } else {
      SPUD_TRY(encode_plain(stretch, ids));
    }
    after_token = false;
  }
  if (options.add_special && affix_.add_eos) ids.push_back(*vocabulary_.eos());
  return ids;
}

std::string_view VocabularyTokenizer::token_bytes(TokenId id, bool render_special) const noexcept {
  if (!vocabulary_.contains(id) || (!render_special && vocabulary_.is_special(id))) return {};
  return vocabulary_.bytes(id);
}

std::string VocabularyTokenizer::decode(std::span<const TokenId> ids, bool render_special) const {
  std::string text;
  bool at_start = affix_.add_space_prefix;
  for (const TokenId id : ids) {
    std::string_view bytes = token_bytes(id, render_special);
    if (at_start && vocabulary_.contains(id) && !vocabulary_.is_special(id)) {
      if (bytes.starts_with(' ')) bytes.remove_prefix(1);
      at_start = false;
    }
    text += bytes;
  }
  return text;
}

bool VocabularyTokenizer::is_special(TokenId id) const noexcept {
  return vocabulary_.contains(id) && vocabulary_.is_special(id);
}

bool VocabularyTokenizer::is_end_of_generation(TokenId id) const noexcept {
  return vocabulary_.is_end_of_generation(id);
}

std::optional<TokenId> VocabularyTokenizer::find_token(std::string_view text) const noexcept {
  const TokenId id = vocabulary_.find(text);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

Result<AffixOptions> load_affix_options(const formats::Metadata& metadata,
                                        const Vocabulary& vocabulary, AffixOptions defaults) {
  const auto read = [&](std::string_view key, bool& value) -> Result<void> {
    if (metadata.find(key) == nullptr) return {};
    const std::optional<bool> found = metadata.find_bool(key);
    if (!found) return fail(ErrorCode::kInvalidArgument, "'{}' must be a bool", key);
    value = *found;
    return {};
  };
  const auto require = [](bool asked, bool known, std::string_view what) -> Result<void> {
    if (!asked || known) return {};
    return fail(
        ErrorCode::kInvalidArgument,
        "'tokenizer.ggml.add_{0}_token' is true but 'tokenizer.ggml.{0}_token_id' is absent", what);
  };
  bool says_bos = false;
  SPUD_TRY(read("tokenizer.ggml.add_bos_token", says_bos));
  if (metadata.find("tokenizer.ggml.add_bos_token") != nullptr) {
    defaults.add_bos = says_bos;
  } else {
    defaults.add_bos = defaults.add_bos && vocabulary.bos().has_value();
  }
  SPUD_TRY(read("tokenizer.ggml.add_eos_token", defaults.add_eos));
  SPUD_TRY(read("tokenizer.ggml.add_space_prefix", defaults.add_space_prefix));
  SPUD_TRY(require(defaults.add_bos, vocabulary.bos().has_value(), "bos"));
  SPUD_TRY(require(defaults.add_eos, vocabulary.eos().has_value(), "eos"));
  return defaults;
}

}  // namespace spud::tokenizer
