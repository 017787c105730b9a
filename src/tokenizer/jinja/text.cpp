// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja/text.hpp"

#include <algorithm>
#include <utility>

namespace spud::tokenizer::jinja {

Text Text::from_user(std::string bytes) {
  Text text;
  if (!bytes.empty()) text.user.push_back({0, bytes.size()});
  text.bytes = std::move(bytes);
  return text;
}

void TextBuilder::append(std::string_view bytes, bool user) {
  if (bytes.empty()) return;
  const std::size_t begin = text_.bytes.size();
  text_.bytes += bytes;
  if (!user) return;
  if (!text_.user.empty() && text_.user.back().end == begin) {
    text_.user.back().end = text_.bytes.size();
  } else {
    text_.user.push_back({begin, text_.bytes.size()});
  }
}

void TextBuilder::append(const Text& text, std::size_t begin, std::size_t end) {
  const std::string_view bytes = text.bytes;
  const auto first = std::ranges::upper_bound(text.user, begin, {}, &TextRange::end);
  std::size_t at = begin;
  for (auto range = first; range != text.user.end() && range->begin < end; ++range) {
    const std::size_t from = std::max(range->begin, begin);
    const std::size_t to = std::min(range->end, end);
    append(bytes.substr(at, from - at), false);
    append(bytes.substr(from, to - from), true);
    at = to;
  }
  append(bytes.substr(at, end - at), false);
}

void TextBuilder::append_like(const Text& text, std::size_t at, std::string_view bytes) {
  append(bytes, is_user_byte(text, at));
}

Text TextBuilder::take() { return std::exchange(text_, Text()); }

Text substring(const Text& text, std::size_t begin, std::size_t end) {
  TextBuilder builder;
  builder.append(text, begin, end);
  return builder.take();
}

bool is_user_byte(const Text& text, std::size_t at) noexcept {
  const auto range = std::ranges::upper_bound(text.user, at, {}, &TextRange::end);
  return range != text.user.end() && range->begin <= at;
}

}  // namespace spud::tokenizer::jinja
