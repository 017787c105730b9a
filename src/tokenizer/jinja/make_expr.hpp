// SPDX-License-Identifier: Apache-2.0
// Makes expression nodes; shared by the two sources of the expression parser.
#pragma once

#include "tokenizer/jinja/ast.hpp"

namespace spud::tokenizer::jinja {

inline ExprPtr make_expr(ExprKind kind, int line) {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = line;
  return node;
}

template <typename... Children>
ExprPtr make_expr(ExprKind kind, int line, Children... children) {
  ExprPtr node = make_expr(kind, line);
  (node->children.push_back(std::move(children)), ...);
  return node;
}

}  // namespace spud::tokenizer::jinja
