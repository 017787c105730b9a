// SPDX-License-Identifier: Apache-2.0
// GPT-2's byte code: every byte is written as one printable character, so that token texts are
// readable. Printable Latin-1 bytes stand for themselves, the other 68 for U+0100 to U+0143.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spud::tokenizer {

char32_t byte_to_code_point(std::uint8_t byte) noexcept;
std::optional<std::uint8_t> code_point_to_byte(char32_t code_point) noexcept;
// One byte as its character in UTF-8.
std::string byte_to_text(std::uint8_t byte);

}  // namespace spud::tokenizer
