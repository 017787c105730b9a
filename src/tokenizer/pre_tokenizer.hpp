// SPDX-License-Identifier: Apache-2.0
// Cuts a text into words before byte-pair merging: no merge crosses a word's border, so the ids
// depend on these cuts. Each model family has its patterns, named by `tokenizer.ggml.pre`.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spud::tokenizer {

struct PreTokenizerSpec {
  std::string_view name;
  // Applied one after the other, each inside the pieces the one before made. What a pattern does
  // not match becomes a piece of its own.
  std::array<std::string_view, 4> patterns{};
  bool ignore_merges = false;  // a word that is a token is taken whole
  bool add_bos = false;        // when the metadata does not say
};

std::span<const PreTokenizerSpec> builtin_pre_tokenizers();

// Immutable; thread-safe.
class PreTokenizer {
 public:
  // kUnimplemented for an unknown name; the message lists the known ones.
  [[nodiscard]] static Result<std::unique_ptr<const PreTokenizer>> create(std::string_view name);
  ~PreTokenizer();

  const PreTokenizerSpec& spec() const noexcept { return *spec_; }
  // The ends of the words, in bytes. A byte that is not UTF-8 is a word of its own. Fails only when
  // the pattern engine gives up (its own limit on backtracking).
  [[nodiscard]] Result<std::vector<std::size_t>> split(std::string_view text) const;

 private:
  struct Compiled;
  explicit PreTokenizer(const PreTokenizerSpec& spec);
  const PreTokenizerSpec* spec_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace spud::tokenizer
