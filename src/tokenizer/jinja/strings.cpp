// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja/strings.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "tokenizer/utf8.hpp"

namespace spud::tokenizer::jinja {
namespace {

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// The character that starts at `at`; ill-formed bytes come one part at a time.
struct Character {
  char32_t code = 0;
  std::size_t length = 1;
};
Character character_at(std::string_view text, std::size_t at) {
  const Utf8Step step = utf8_step(text.substr(at));
  if (step.kind != Utf8Kind::kValid) return {U'\uFFFD', step.length};
  return {utf8_decode(text.substr(at, step.length)), step.length};
}

bool strips(std::string_view part, char32_t code, std::optional<std::string_view> characters) {
  return characters ? characters->find(part) != std::string_view::npos : is_white_space(code);
}

bool is_letter(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

}  // namespace

Text strip(const Text& text, std::optional<std::string_view> characters, Sides sides) {
  const std::string_view bytes = text.bytes;
  std::size_t begin = 0;
  std::size_t end = bytes.size();
  while (sides.left && begin < end) {
    const Character c = character_at(bytes, begin);
    if (!strips(bytes.substr(begin, c.length), c.code, characters)) break;
    begin += c.length;
  }
  while (sides.right && end > begin) {
    const std::size_t last = utf8_step_back(bytes, end);
    const Character c = character_at(bytes, last);
    if (!strips(bytes.substr(last, end - last), c.code, characters)) break;
    end = last;
  }
  return substring(text, begin, end);
}

Text change_case(const Text& text, Case mode) {
  const auto upper = [](char32_t c) {
    return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
  };
  const auto lower = [](char32_t c) {
    return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  };
  TextBuilder out;
  bool at_word = true;  // the next letter begins a word
  for (std::size_t i = 0; i < text.bytes.size();) {
    const Character c = character_at(text.bytes, i);
    std::string mapped;
    const bool up = mode == Case::kUpper || (mode != Case::kLower && at_word);
    if (mode == Case::kUpper && c.code == U'ß') {
      mapped = "SS";
    } else {
      utf8_append(up ? upper(c.code) : lower(c.code), mapped);
    }
    out.append_like(text, i, mapped);
    if (mode == Case::kCapitalize) at_word = false;
    if (mode == Case::kTitle) at_word = !is_letter(c.code);
    if (mode == Case::kTitleFilter) {
      at_word = is_white_space(c.code) ||
                std::u32string_view(U"-({[<").find(c.code) != std::u32string_view::npos;
    }
    i += c.length;
  }
  return out.take();
}

Result<Text> replace(Budget& budget, const Text& text, std::string_view from, const Text& to,
                     std::int64_t count) {
  const std::string_view bytes = text.bytes;
  TextBuilder out;
  std::size_t at = 0;
  while (count != 0) {
    std::size_t found = from.empty() ? at : bytes.find(from, at);
    if (found == std::string_view::npos) break;
    out.append(text, at, found);
    out.append(to);
    SPUD_TRY(budget.step());
    SPUD_TRY(out.size() > budget.max_bytes() ? budget.bytes(out.size()) : Result<void>());
    if (count > 0) --count;
    at = found + from.size();
    if (!from.empty()) continue;
    if (at >= bytes.size()) break;
    const std::size_t next = at + character_at(bytes, at).length;
    out.append(text, at, next);
    at = next;
  }
  out.append(text, std::min(at, bytes.size()), bytes.size());
  SPUD_TRY(budget.bytes(out.size()));
  return out.take();
}

std::vector<Text> split(const Text& text, std::optional<std::string_view> separator,
                        std::int64_t limit) {
  const std::string_view bytes = text.bytes;
  std::vector<Text> parts;
  if (separator) {
    std::size_t at = 0;
    while (limit != 0) {
      const std::size_t found = bytes.find(*separator, at);
      if (found == std::string_view::npos) break;
      parts.push_back(substring(text, at, found));
      at = found + separator->size();
      --limit;
    }
    parts.push_back(substring(text, at, bytes.size()));
    return parts;
  }
  const auto skip = [&](std::size_t at, bool spaces) {
    while (at < bytes.size()) {
      const Character c = character_at(bytes, at);
      if (is_white_space(c.code) != spaces) break;
      at += c.length;
    }
    return at;
  };
  for (std::size_t at = skip(0, true); at < bytes.size(); at = skip(at, true)) {
    if (limit-- == 0) {
      const Text rest = substring(text, at, bytes.size());
      parts.push_back(strip(rest, std::nullopt, {.left = false, .right = true}));
      break;
    }
    const std::size_t end = skip(at, false);
    parts.push_back(substring(text, at, end));
    at = end;
  }
  return parts;
}

std::vector<Text> split_from_right(const Text& text, std::string_view separator,
                                   std::int64_t limit) {
  std::vector<Text> parts;
  std::size_t end = text.bytes.size();
  while (limit != 0) {
    if (end < separator.size()) break;
    const std::size_t found = text.bytes.rfind(separator, end - separator.size());
    if (found == std::string::npos) break;
    parts.push_back(substring(text, found + separator.size(), end));
    end = found;
    --limit;
  }
  parts.push_back(substring(text, 0, end));
  std::ranges::reverse(parts);
  return parts;
}

std::vector<Text> split_lines(const Text& text) {
  std::vector<Text> lines;
  const std::string& bytes = text.bytes;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t end = bytes.find_first_of("\n\r\v\f", at);
    if (end == std::string::npos) end = bytes.size();
    lines.push_back(substring(text, at, end));
    at = end + (bytes.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}

Result<Text> repeat(Budget& budget, const Text& text, std::int64_t count) {
  TextBuilder out;
  if (count <= 0 || text.bytes.empty()) return out.take();
  // A product beyond the limit is refused before it is formed.
  const std::size_t times = static_cast<std::size_t>(count);
  const bool fits = times <= budget.max_bytes() / text.bytes.size();
  SPUD_TRY(budget.bytes(fits ? times * text.bytes.size() : budget.max_bytes() + 1));
  for (std::size_t i = 0; i < times; ++i) out.append(text);
  return out.take();
}

std::size_t byte_of_character(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += utf8_step(text.substr(at)).length;
  return at;
}

std::int64_t count_characters(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += utf8_step(text.substr(at)).length;
  return count;
}

}  // namespace spud::tokenizer::jinja
