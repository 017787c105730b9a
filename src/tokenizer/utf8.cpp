// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/utf8.hpp"

namespace spud::tokenizer {
namespace {

// What may follow a lead byte: how many bytes, and the range of the first of them (table 3-7 of the
// Unicode standard; the narrower ranges exclude overlong forms, surrogates and > U+10FFFF).
struct Lead {
  std::uint8_t length;
  std::uint8_t second_min;
  std::uint8_t second_max;
};

constexpr Lead lead_of(std::uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view rest) noexcept {
  const auto first = static_cast<std::uint8_t>(rest[0]);
  if (first < 0x80) return {Utf8Kind::kValid, 1};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {Utf8Kind::kInvalid, 1};
  for (std::uint8_t i = 1; i < lead.length; ++i) {
    if (i >= rest.size()) return {Utf8Kind::kIncomplete, i};
    const auto byte = static_cast<std::uint8_t>(rest[i]);
    const std::uint8_t min = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Kind::kInvalid, i};
  }
  return {Utf8Kind::kValid, lead.length};
}

std::size_t utf8_step_back(std::string_view text, std::size_t end) noexcept {
  text = text.substr(0, end);
  std::size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<std::uint8_t>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  return utf8_step(text.substr(begin)).length == end - begin ? begin : end - 1;
}

char32_t utf8_decode(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(character[i]); };
  switch (character.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    case 3:
      return (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    default:
      return (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
             (byte(3) & 0x3Fu);
  }
}

void utf8_append(char32_t code_point, std::string& out) {
  const auto tail = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | code_point >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    out += step.kind == Utf8Kind::kValid ? bytes.substr(0, step.length) : kReplacementCharacter;
    bytes.remove_prefix(step.length);
  }
  return out;
}

}  // namespace spud::tokenizer
