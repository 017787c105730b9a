// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?" for misspelled commands, keys and names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spud {

// The known word with the smallest edit distance (insert, delete, replace, swap of neighbours), if
// it is at most a third of the word's length and at least one; nothing otherwise.
std::optional<std::string_view> nearest_word(std::string_view word,
                                             std::span<const std::string_view> known);

// "; did you mean 'x'? (known: x, y, z)" or "; known: x, y, z", cut after 20 names.
std::string suggestion_text(std::string_view word, std::span<const std::string_view> known);

}  // namespace spud
