// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/vocabulary.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/model_file.hpp"
#include "tokenizer/byte_level.hpp"
#include "tokenizer/utf8.hpp"

namespace spud::tokenizer {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581

// Real vocabularies stay below 300,000 tokens of at most a few hundred bytes.
constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
constexpr std::size_t kMaxTokenBytes = std::size_t{1} << 16;
// Special and user-defined tokens are looked for at every byte of a text.
constexpr std::size_t kMaxMarkedBytes = 1024;
constexpr std::size_t kMaxArenaBytes = std::size_t{1} << 30;

// Tokens that end a generation by their name, whatever the metadata says: chat models often name
// only one of theirs as EOS. Facts from the models' own tokenizer files.
constexpr std::string_view kEndNames[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<eos>",
    "<end_of_utterance>",
    "</s>",
    "<|fim_pad|>",
    "<|file_sep|>",
    "<|repo_name|>",
    "<｜end▁of▁sentence｜>",
};

// An end marker in some vocabularies, HTML in others (Gemma): there it is shown and ends nothing,
// but the published ids recognise it only with parse_special.
constexpr std::string_view kStrikeEnd = "</s>";

std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const int high = digit(text[3]);
  const int low = digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

// A character outside the code stays as it is: such tokens exist (added without being marked so).
std::string decode_byte_level(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const std::string_view part = text.substr(0, step.length);
    const auto byte =
        step.kind == Utf8Kind::kValid ? code_point_to_byte(utf8_decode(part)) : std::nullopt;
    if (byte) {
      out.push_back(static_cast<char>(*byte));
    } else {
      out += part;
    }
    text.remove_prefix(step.length);
  }
  return out;
}

std::string decode_spaces(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t found = text.find(kSpaceSymbol);
    out += text.substr(0, found);
    if (found == std::string_view::npos) break;
    out.push_back(' ');
    text.remove_prefix(found + kSpaceSymbol.size());
  }
  return out;
}

std::string hex_byte_text(unsigned byte) { return fmt::format("<0x{:02X}>", byte); }

// The text as an error message may show it: short and printable.
std::string printable(std::string_view text) {
  std::string shown = to_valid_utf8(text.substr(0, 40));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text.size() > 40 ? shown + "..." : shown;
}

}  // namespace

void StringArena::reserve(std::size_t strings, std::size_t bytes) {
  ends_.reserve(strings);
  bytes_.reserve(bytes);
}

void StringArena::append(std::string_view text) {
  bytes_ += text;
  ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

Result<Vocabulary> Vocabulary::load(const formats::Metadata& metadata, bool byte_level) {
  const std::vector<std::string>* tokens = metadata.find_strings(kTokensKey);
  if (tokens == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "the model has no '{}' (an array of strings); it cannot be tokenised", kTokensKey);
  }
  if (tokens->empty()) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is empty; a vocabulary needs tokens",
                kTokensKey);
  }
  if (tokens->size() > kMaxTokens) {
    return fail(ErrorCode::kInvalidArgument, "'{}' has {} tokens, more than the limit of {}",
                kTokensKey, tokens->size(), kMaxTokens);
  }
  std::size_t total = 0;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const std::size_t bytes = (*tokens)[i].size();
    if (bytes > kMaxTokenBytes) {
      return fail(ErrorCode::kInvalidArgument,
                  "token {} is {} bytes long, more than the limit of {}", i, bytes, kMaxTokenBytes);
    }
    total += bytes;
  }
  if (total > kMaxArenaBytes) {
    return fail(ErrorCode::kInvalidArgument, "the tokens take {} bytes, more than the limit of {}",
                total, kMaxArenaBytes);
  }
  Vocabulary vocabulary;
  vocabulary.texts_.reserve(tokens->size(), total);
  for (const std::string& token : *tokens) {
    vocabulary.texts_.append(token);
    vocabulary.max_token_bytes_ = std::max(vocabulary.max_token_bytes_, token.size());
  }
  SPUD_TRY(vocabulary.load_types(metadata));
  SPUD_TRY(vocabulary.load_scores(metadata));
  SPUD_TRY(vocabulary.check_marked_tokens());
  SPUD_TRY(vocabulary.build_index());
  SPUD_TRY(vocabulary.load_special_ids(metadata));
  SPUD_TRY(vocabulary.load_strips(metadata));
  vocabulary.mark_end_of_generation();
  SPUD_TRY(vocabulary.load_bytes(byte_level));
  return vocabulary;
}

Result<void> Vocabulary::load_types(const formats::Metadata& metadata) {
  types_.assign(size(), TokenType::kNormal);
  if (metadata.find(kTypesKey) == nullptr) return {};
  const std::vector<std::int32_t>* types = metadata.find_ints(kTypesKey);
  if (types == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "'{}' must be an array of int32", kTypesKey);
  }
  if (types->size() != size()) {
    return fail(ErrorCode::kInvalidArgument, "'{}' has {} entries for {} tokens", kTypesKey,
                types->size(), size());
  }
  for (std::size_t i = 0; i < size(); ++i) {
    const std::int32_t type = (*types)[i];
    if (type < 0 || type > 6) {
      return fail(ErrorCode::kInvalidArgument, "token {} has type {}; known types are 0 to 6", i,
                  type);
    }
    types_[i] = static_cast<TokenType>(type);
  }
  return {};
}

Result<void> Vocabulary::load_scores(const formats::Metadata& metadata) {
  if (metadata.find(kScoresKey) == nullptr) return {};
  const std::vector<float>* scores = metadata.find_floats(kScoresKey);
  if (scores == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "'{}' must be an array of float32", kScoresKey);
  }
  if (scores->size() != size()) {
    return fail(ErrorCode::kInvalidArgument, "'{}' has {} entries for {} tokens", kScoresKey,
                scores->size(), size());
  }
  for (std::size_t i = 0; i < size(); ++i) {
    // A NaN has no place in an order; infinities do.
    if (std::isnan((*scores)[i])) {
      return fail(ErrorCode::kInvalidArgument, "token {} has the score NaN", i);
    }
  }
  scores_ = *scores;
  return {};
}

Result<void> Vocabulary::check_marked_tokens() const {
  for (std::size_t i = 0; i < size(); ++i) {
    const bool marked = is_special(static_cast<TokenId>(i)) || types_[i] == TokenType::kUserDefined;
    if (marked && texts_[i].size() > kMaxMarkedBytes) {
      return fail(ErrorCode::kInvalidArgument,
                  "the special token {} is {} bytes long, more than the limit of {}", i,
                  texts_[i].size(), kMaxMarkedBytes);
    }
  }
  return {};
}

Result<void> Vocabulary::build_index() {
  const std::size_t capacity = std::bit_ceil(size() * 2);
  slots_.assign(capacity, 0);
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string_view key = texts_[i];
    if (key.empty()) {
      types_[i] = TokenType::kUnused;  // a hole: nothing can become it
      continue;
    }
    const std::uint64_t hash = XXH3_64bits(key.data(), key.size());
    std::size_t slot = hash & (capacity - 1);
    for (; slots_[slot] != 0; slot = (slot + 1) & (capacity - 1)) {
      const std::size_t other = (slots_[slot] & 0xFFFFFFFFu) - 1;
      if (slots_[slot] >> 32 == hash >> 32 && texts_[other] == key) {
        return fail(ErrorCode::kInvalidArgument, "tokens {} and {} are both '{}'", other, i,
                    printable(key));
      }
    }
    slots_[slot] = (hash >> 32 << 32) | (i + 1);
  }
  return {};
}

TokenId Vocabulary::find(std::string_view text) const noexcept {
  if (text.empty() || text.size() > max_token_bytes_) return kNoToken;
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const std::size_t id = (slots_[slot] & 0xFFFFFFFFu) - 1;
    if (slots_[slot] >> 32 == hash >> 32 && texts_[id] == text) return static_cast<TokenId>(id);
  }
  return kNoToken;
}

Result<void> Vocabulary::load_bytes(bool byte_level) {
  bytes_.reserve(size(), 0);
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string_view raw = texts_[i];
    switch (types_[i]) {
      case TokenType::kByte: {
        const auto byte = parse_byte_token(raw);
        if (!byte) {
          return fail(ErrorCode::kInvalidArgument,
                      "token {} '{}' is marked as a byte but is not of the form <0x00> to <0xFF>",
                      i, printable(raw));
        }
        const char c = static_cast<char>(*byte);
        bytes_.append(std::string_view(&c, 1));
        break;
      }
      case TokenType::kUnknown:
      case TokenType::kControl:
      case TokenType::kUserDefined:
        bytes_.append(raw);
        break;
      default:
        bytes_.append(byte_level ? decode_byte_level(raw) : decode_spaces(raw));
        break;
    }
  }
  byte_tokens_.assign(256, kNoToken);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    const TokenId id = find_plain(byte_level ? byte_to_text(value) : hex_byte_text(byte));
    byte_tokens_[byte] = id;
    if (id == kNoToken && !byte_level) {
      const char c = static_cast<char>(value);
      byte_tokens_[byte] = find_plain(std::string_view(&c, 1));
    }
  }
  return {};
}

Result<void> Vocabulary::load_special_ids(const formats::Metadata& metadata) {
  const auto read = [&](std::string_view key, std::optional<TokenId>& id) -> Result<void> {
    if (metadata.find(key) == nullptr) return {};
    const std::optional<std::int64_t> value = metadata.find_int(key);
    if (!value || *value < -1 || *value >= static_cast<std::int64_t>(size())) {
      return fail(ErrorCode::kInvalidArgument, "'{}' must be a token id below {}{}", key, size(),
                  value ? fmt::format(", not {}", *value) : std::string());
    }
    if (*value >= 0) id = static_cast<TokenId>(*value);
    return {};
  };
  SPUD_TRY(read("tokenizer.ggml.bos_token_id", bos_));
  SPUD_TRY(read("tokenizer.ggml.eos_token_id", eos_));
  SPUD_TRY(read("tokenizer.ggml.unknown_token_id", unknown_));
  std::optional<TokenId> end_of_turn;
  std::optional<TokenId> end_of_message;
  SPUD_TRY(read("tokenizer.ggml.eot_token_id", end_of_turn));
  SPUD_TRY(read("tokenizer.ggml.eom_token_id", end_of_message));
  for (const auto& id : {eos_, end_of_turn, end_of_message}) {
    if (id) end_of_generation_.push_back(*id);
  }
  return {};
}

Result<void> Vocabulary::load_strips(const formats::Metadata& metadata) {
  const auto read = [&](std::string_view key, std::vector<TokenId>& ids) -> Result<void> {
    if (metadata.find(key) == nullptr) return {};
    const std::vector<std::int32_t>* found = metadata.find_ints(key);
    if (found == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "'{}' must be an array of int32", key);
    }
    for (const std::int32_t id : *found) {
      if (!contains(id)) {
        return fail(ErrorCode::kInvalidArgument, "'{}' must hold token ids below {}, not {}", key,
                    size(), id);
      }
    }
    ids = *found;
    std::ranges::sort(ids);
    return {};
  };
  SPUD_TRY(read("tokenizer.ggml.lstrip_token_ids", strip_left_));
  SPUD_TRY(read("tokenizer.ggml.rstrip_token_ids", strip_right_));
  return {};
}

void Vocabulary::mark_end_of_generation() {
  for (const std::string_view name : kEndNames) {
    const TokenId id = find(name);
    if (id == kNoToken) continue;
    // Converters have marked such tokens as text or user-defined; no text should become one.
    if (name != kStrikeEnd) types_[static_cast<std::size_t>(id)] = TokenType::kControl;
    if (is_special(id)) end_of_generation_.push_back(id);
  }
  // Harmony-style vocabularies close every message with <|end|> and the turn with another token.
  const TokenId end = find("<|end|>");
  const auto has = [&](std::string_view name) {
    const TokenId id = find(name);
    return id != kNoToken && is_special(id);
  };
  if (end != kNoToken && has("<|return|>") && has("<|call|>") && eos_ != end) {
    std::erase(end_of_generation_, end);
  }
  std::ranges::sort(end_of_generation_);
}

bool Vocabulary::needs_parse_special(TokenId id) const noexcept {
  return is_special(id) || (type(id) == TokenType::kUserDefined && text(id) == kStrikeEnd);
}

bool Vocabulary::is_end_of_generation(TokenId id) const noexcept {
  return std::ranges::binary_search(end_of_generation_, id);
}

}  // namespace spud::tokenizer
