// SPDX-License-Identifier: Apache-2.0
// Python's string operations on marked text. Positions are bytes; characters are never cut.
#pragma once

#include <optional>

#include "tokenizer/jinja/budget.hpp"
#include "tokenizer/jinja/text.hpp"

namespace spud::tokenizer::jinja {

struct Sides {
  bool left = true;
  bool right = true;
};
// Without `characters`: white space.
Text strip(const Text& text, std::optional<std::string_view> characters, Sides sides = {});

enum class Case { kUpper, kLower, kCapitalize, kTitle, kTitleFilter };
Text change_case(const Text& text, Case mode);

// `count` < 0: all. An empty `from` matches between all characters, as in Python.
[[nodiscard]] Result<Text> replace(Budget& budget, const Text& text, std::string_view from,
                                   const Text& to, std::int64_t count = -1);
// Without a separator: at runs of white space. `limit` < 0: no limit. The separator is not empty.
std::vector<Text> split(const Text& text, std::optional<std::string_view> separator,
                        std::int64_t limit = -1);
std::vector<Text> split_from_right(const Text& text, std::string_view separator,
                                   std::int64_t limit);
std::vector<Text> split_lines(const Text& text);
[[nodiscard]] Result<Text> repeat(Budget& budget, const Text& text, std::int64_t count);

// Byte offset of the character at `index`; the size when past the end.
std::size_t byte_of_character(std::string_view text, std::int64_t index);
std::int64_t count_characters(std::string_view text);

}  // namespace spud::tokenizer::jinja
