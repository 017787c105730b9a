// SPDX-License-Identifier: Apache-2.0
// Cuts a template into text and the tokens inside {{ }} and {% %}, with Jinja's white space rules
// as Hugging Face sets them: trim_blocks and lstrip_blocks on, one newline at the end dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spud::tokenizer::jinja {

enum class TokenKind {
  kText,        // outside all tags
  kPrintBegin,  // {{
  kPrintEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,  // unescaped
  kInteger,
  kFloat,
  kOperator,  // "+", "==", "(", ...
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
};

// Ends with a kEnd. kInvalidArgument with the line for an unclosed tag or string.
[[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace spud::tokenizer::jinja
