// SPDX-License-Identifier: Apache-2.0
// Values as text: what {{ x }} prints (Python's str), repr, and JSON as Hugging Face's tojson.
#pragma once

#include "tokenizer/jinja/budget.hpp"
#include "tokenizer/jinja/value.hpp"

namespace spud::tokenizer::jinja {

[[nodiscard]] Result<TextPtr> to_text(Budget& budget, const Value& value);

struct JsonStyle {
  int indent = -1;  // -1: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};
[[nodiscard]] Result<Value> to_json(Budget& budget, const Value& value, const JsonStyle& style);

// 0.1 -> "0.1", 1e16 -> "1e+16", 3.0 -> "3.0".
std::string python_float(double value);

}  // namespace spud::tokenizer::jinja
