// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/byte_level.hpp"

#include <array>

#include "tokenizer/utf8.hpp"

namespace spud::tokenizer {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteCode {
  std::array<char32_t, 256> to_code_point{};
  std::array<std::int16_t, 0x144> to_byte{};
};

constexpr ByteCode make_byte_code() {
  ByteCode code;
  code.to_byte.fill(-1);
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    code.to_code_point[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    code.to_byte[code.to_code_point[byte]] = static_cast<std::int16_t>(byte);
  }
  return code;
}

constexpr ByteCode kByteCode = make_byte_code();

}  // namespace

char32_t byte_to_code_point(std::uint8_t byte) noexcept { return kByteCode.to_code_point[byte]; }

std::optional<std::uint8_t> code_point_to_byte(char32_t code_point) noexcept {
  if (code_point >= kByteCode.to_byte.size() || kByteCode.to_byte[code_point] < 0) {
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(kByteCode.to_byte[code_point]);
}

std::string byte_to_text(std::uint8_t byte) {
  std::string text;
  utf8_append(byte_to_code_point(byte), text);
  return text;
}

}  // namespace spud::tokenizer
