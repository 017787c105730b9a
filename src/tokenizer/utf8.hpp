// SPDX-License-Identifier: Apache-2.0
// Steps through bytes that claim to be UTF-8 and may not be. Ill-formed bytes are grouped as
// Unicode recommends (maximal subparts, as Python and the WHATWG decoder do), so that a stream cut
// anywhere gives the same replacement characters as the whole text.
// Not a Unicode library: no normalisation, no properties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spud::tokenizer {

enum class Utf8Kind : std::uint8_t {
  kValid,       // a whole character
  kIncomplete,  // the text ends inside what could still become a character
  kInvalid,     // can never become one
};

struct Utf8Step {
  Utf8Kind kind;
  std::uint8_t length;  // bytes of the character, or of the ill-formed part; at least 1
};

// Looks at the start of `rest`, which must not be empty.
Utf8Step utf8_step(std::string_view rest) noexcept;

// Where the last character (or ill-formed part) of text[0, end) begins; end > 0.
std::size_t utf8_step_back(std::string_view text, std::size_t end) noexcept;

// The code point of a whole character that utf8_step found valid.
char32_t utf8_decode(std::string_view character) noexcept;
void utf8_append(char32_t code_point, std::string& out);

// The text with every ill-formed part replaced by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace spud::tokenizer
