// SPDX-License-Identifier: Apache-2.0
// The token table of a model: texts, scores, types and special ids, checked once when it is built
// from `tokenizer.ggml.*`. 262,144 tokens must load in a moment, so all texts live in one arena and
// the hash table holds ids only.
// Knows nothing of merging: see bpe.hpp and sentencepiece.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer {

inline constexpr TokenId kNoToken = -1;

// GGUF's numbers.
enum class TokenType : std::uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // never shown, never made from plain text
  kUserDefined = 4,  // found in any text before everything else, and shown
  kUnused = 5,
  kByte = 6,  // "<0x0A>"
};

// Strings one after the other in one allocation.
class StringArena {
 public:
  void reserve(std::size_t strings, std::size_t bytes);
  void append(std::string_view text);
  std::size_t size() const noexcept { return ends_.size(); }
  std::string_view operator[](std::size_t i) const noexcept {
    const std::uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;
};

// Immutable once loaded; thread-safe.
class Vocabulary {
 public:
  // kInvalidArgument names the key and the token at fault. `byte_level`: texts are written in the
  // byte-to-character code of GPT-2; otherwise U+2581 stands for a space.
  [[nodiscard]] static Result<Vocabulary> load(const formats::Metadata& metadata, bool byte_level);

  std::size_t size() const noexcept { return texts_.size(); }
  bool contains(TokenId id) const noexcept {
    return id >= 0 && static_cast<std::size_t>(id) < size();
  }
  // The ids below must be in range.
  std::string_view text(TokenId id) const noexcept { return texts_[static_cast<std::size_t>(id)]; }
  // The bytes the token stands for: code undone, byte tokens resolved.
  std::string_view bytes(TokenId id) const noexcept { return bytes_[static_cast<std::size_t>(id)]; }
  TokenType type(TokenId id) const noexcept { return types_[static_cast<std::size_t>(id)]; }
  float score(TokenId id) const noexcept {
    return scores_.empty() ? 0.0f : scores_[static_cast<std::size_t>(id)];
  }
  bool has_scores() const noexcept { return !scores_.empty(); }
  // Control and unknown tokens: hidden when decoding, never made from plain text.
  bool is_special(TokenId id) const noexcept {
    return type(id) == TokenType::kControl || type(id) == TokenType::kUnknown;
  }
  // Marked tokens that swallow the white space before (after) them in a text: `lstrip` and `rstrip`
  // of tokenizer.json. Sorted.
  const std::vector<TokenId>& strip_left() const noexcept { return strip_left_; }
  const std::vector<TokenId>& strip_right() const noexcept { return strip_right_; }
  // Recognised in a text only with parse_special.
  bool needs_parse_special(TokenId id) const noexcept;
  bool is_end_of_generation(TokenId id) const noexcept;

  // kNoToken when there is none.
  TokenId find(std::string_view text) const noexcept;
  // As find(), but never a special token: what plain text may become.
  TokenId find_plain(std::string_view text) const noexcept {
    const TokenId id = find(text);
    return id != kNoToken && is_special(id) ? kNoToken : id;
  }
  // The token for one raw byte; kNoToken when the model lacks it.
  TokenId byte_token(std::uint8_t byte) const noexcept { return byte_tokens_[byte]; }
  std::size_t max_token_bytes() const noexcept { return max_token_bytes_; }

  std::optional<TokenId> bos() const noexcept { return bos_; }
  std::optional<TokenId> eos() const noexcept { return eos_; }
  std::optional<TokenId> unknown() const noexcept { return unknown_; }

 private:
  Vocabulary() = default;
  [[nodiscard]] Result<void> load_types(const formats::Metadata& metadata);
  [[nodiscard]] Result<void> load_scores(const formats::Metadata& metadata);
  [[nodiscard]] Result<void> check_marked_tokens() const;
  [[nodiscard]] Result<void> build_index();
  [[nodiscard]] Result<void> load_bytes(bool byte_level);
  [[nodiscard]] Result<void> load_special_ids(const formats::Metadata& metadata);
  [[nodiscard]] Result<void> load_strips(const formats::Metadata& metadata);
  void mark_end_of_generation();

  StringArena texts_;
  StringArena bytes_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  std::vector<std::uint64_t> slots_;  // open addressing: upper half hash, lower half id + 1
  std::vector<TokenId> byte_tokens_;
  std::vector<TokenId> end_of_generation_;  // sorted
  std::vector<TokenId> strip_left_, strip_right_;
  std::size_t max_token_bytes_ = 0;
  std::optional<TokenId> bos_, eos_, unknown_;
};

}  // namespace spud::tokenizer
