// SPDX-License-Identifier: Apache-2.0
// Cuts a text at its special tokens ("<|im_end|>") and user-defined ones, before the model's own
// tokeniser sees the stretches between. The longest token of the whole text is cut out first, then
// the next: the published ids depend on that order ("abcd" with "ab" and "bcd" gives "a", "bcd").
// A part of the text can be marked literal: no control token is found in it or across its border.
// A token that strips takes the white space beside it along, as Hugging Face's tokenizers do.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.hpp"

namespace spud::tokenizer {

// A stretch of plain text, or one token with the white space it swallowed. `begin`/`end` are byte
// offsets in the text.
struct Fragment {
  std::size_t begin = 0;
  std::size_t end = 0;
  TokenId token = kNoToken;  // kNoToken: plain text
};

// Immutable; thread-safe.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);

  // Cost: O(n log n) for n bytes times the longest token. `literal` is sorted and free of overlap;
  // without `parse_special` everything is literal.
  std::vector<Fragment> split(std::string_view text, bool parse_special,
                              std::span<const TextRange> literal) const;

 private:
  // A trie over the token texts; children are a list of siblings.
  struct Node {
    std::int32_t first_child = 0;
    std::int32_t next_sibling = 0;
    TokenId token = kNoToken;
    char byte = 0;
    bool control = false;
  };
  struct Match {
    std::size_t begin;
    std::size_t length;
    TokenId token;
  };

  void insert(std::string_view text, TokenId token, bool control);
  std::int32_t child(std::int32_t node, char byte) const noexcept;
  // The longest token at `begin` that ends at or before `limit`; no control token past `plain_end`.
  Match longest_match(std::string_view text, std::size_t begin, std::size_t limit,
                      std::size_t control_limit) const noexcept;

  std::vector<Node> nodes_;
  std::vector<TokenId> strip_left_, strip_right_;  // sorted
  std::array<bool, 256> starts_{};  // bytes that begin a token: nearly all positions stop here
};

}  // namespace spud::tokenizer
