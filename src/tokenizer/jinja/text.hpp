// SPDX-License-Identifier: Apache-2.0
// A template's string, which remembers which of its bytes a client wrote. Every string operation
// carries the marks along, so that "<|im_end|>" inside a message is still known to be the user's
// after trimming, joining or JSON encoding. A string without marks costs nothing extra.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer::jinja {

struct Text {
  std::string bytes;
  std::vector<TextRange> user;  // sorted, neither touching nor empty

  static Text from_user(std::string bytes);
};

// Puts a Text together from pieces of others.
class TextBuilder {
 public:
  void append(std::string_view bytes, bool user = false);
  void append(const Text& text) { append(text, 0, text.bytes.size()); }
  void append(const Text& text, std::size_t begin, std::size_t end);
  // One character in place of text.bytes[at]: marked as that byte is.
  void append_like(const Text& text, std::size_t at, std::string_view bytes);
  std::size_t size() const noexcept { return text_.bytes.size(); }
  const Text& text() const noexcept { return text_; }
  Text take();

 private:
  Text text_;
};

Text substring(const Text& text, std::size_t begin, std::size_t end);
bool is_user_byte(const Text& text, std::size_t at) noexcept;

}  // namespace spud::tokenizer::jinja
