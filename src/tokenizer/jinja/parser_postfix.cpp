// SPDX-License-Identifier: Apache-2.0
// What follows a value: .name, [index], (arguments), | filter, is test.
#include <algorithm>

#include "tokenizer/jinja/make_expr.hpp"
#include "tokenizer/jinja/parser.hpp"

namespace spud::tokenizer::jinja {

Result<ExprPtr> ExpressionParser::parse_postfix(ExprPtr object) {
  while (true) {
    const int line = tokens_.line();
    if (tokens_.skip_op(".")) {
      const Token name = tokens_.take();
      if (name.kind != TokenKind::kName && name.kind != TokenKind::kInteger) {
        return parse_error(name.line,
                           fmt::format("expected a name after '.', found {}", describe(name)));
      }
      ExprPtr node = make_expr(ExprKind::kAttribute, line, std::move(object));
      node->name = name.text;
      SPUD_TRY(object, finish(std::move(node)));
    } else if (tokens_.is_op("[")) {
      SPUD_TRY(object, parse_subscript(std::move(object)));
    } else if (tokens_.is_op("(")) {
      ExprPtr call = make_expr(ExprKind::kCall, line, std::move(object));
      SPUD_TRY(parse_arguments(*call));
      SPUD_TRY(object, finish(std::move(call)));
    } else {
      return object;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_subscript(ExprPtr object) {
  const int line = tokens_.take().line;
  ExprPtr parts[3];
  int colons = 0;
  while (!tokens_.is_op("]")) {
    if (tokens_.skip_op(":")) {
      if (++colons > 2) return parse_error(line, "a slice has at most three parts");
      continue;
    }
    if (parts[colons] != nullptr) break;
    SPUD_TRY(parts[colons], parse());
  }
  SPUD_TRY(expect_op("]"));
  if (colons > 0) {
    return finish(make_expr(ExprKind::kSlice, line, std::move(object), std::move(parts[0]),
                            std::move(parts[1]), std::move(parts[2])));
  }
  if (parts[0] == nullptr) return parse_error(line, "an index is missing between '[' and ']'");
  return finish(make_expr(ExprKind::kSubscript, line, std::move(object), std::move(parts[0])));
}

Result<void> ExpressionParser::parse_arguments(Expr& call) {
  SPUD_TRY(expect_op("("));
  while (!tokens_.is_op(")")) {
    if (tokens_.is_op("*") || tokens_.is_op("**")) {
      return parse_error(tokens_.line(), "unpacking of arguments ('*', '**') is not supported",
                         ErrorCode::kUnimplemented);
    }
    const bool is_named = tokens_.is(TokenKind::kName) &&
                          tokens_.peek(1).kind == TokenKind::kOperator &&
                          tokens_.peek(1).text == "=";
    if (is_named) {
      std::string name = tokens_.take().text;
      tokens_.take();
      SPUD_TRY(ExprPtr value, parse());
      call.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (!call.named.empty()) {
        return parse_error(tokens_.line(), "a positional argument follows a named one");
      }
      SPUD_TRY(ExprPtr value, parse());
      call.children.push_back(std::move(value));
    }
    if (!tokens_.skip_op(",")) break;
  }
  return expect_op(")");
}

Result<ExprPtr> ExpressionParser::parse_filters_and_tests(ExprPtr input) {
  while (true) {
    if (tokens_.is_op("|")) {
      tokens_.take();
      SPUD_TRY(input, parse_filter(std::move(input)));
    } else if (tokens_.is_name("is")) {
      SPUD_TRY(input, parse_test(std::move(input)));
    } else if (tokens_.is_op("(")) {
      ExprPtr call = make_expr(ExprKind::kCall, tokens_.line(), std::move(input));
      SPUD_TRY(parse_arguments(*call));
      SPUD_TRY(input, finish(std::move(call)));
    } else {
      return input;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_filter(ExprPtr input) {
  const Token name = tokens_.take();
  if (name.kind != TokenKind::kName) {
    return parse_error(name.line, fmt::format("expected a filter, found {}", describe(name)));
  }
  ExprPtr node = make_expr(ExprKind::kFilter, name.line, std::move(input));
  node->name = name.text;
  node->filter = find_filter(name.text);
  if (node->filter == nullptr) {
    return parse_error(
        name.line,
        fmt::format("the filter '{}' is not supported{}", name.text, known_filters(name.text)),
        ErrorCode::kUnimplemented);
  }
  if (tokens_.is_op("(")) SPUD_TRY(parse_arguments(*node));
  return finish(std::move(node));
}

Result<std::vector<ExprPtr>> ExpressionParser::parse_filter_chain(bool first_without_bar) {
  std::vector<ExprPtr> chain;
  while (first_without_bar || tokens_.skip_op("|")) {
    first_without_bar = false;
    SPUD_TRY(ExprPtr filter, parse_filter(nullptr));
    chain.push_back(std::move(filter));
  }
  return chain;
}

Result<ExprPtr> ExpressionParser::parse_test(ExprPtr input) {
  const int line = tokens_.take().line;
  const bool negated = tokens_.skip_name("not");
  const Token name = tokens_.take();
  if (name.kind != TokenKind::kName) {
    return parse_error(name.line, fmt::format("expected a test, found {}", describe(name)));
  }
  ExprPtr node = make_expr(ExprKind::kTest, line, std::move(input));
  node->name = name.text;
  node->test = find_test(name.text);
  if (node->test == nullptr) {
    return parse_error(
        name.line,
        fmt::format("the test '{}' is not supported{}", name.text, known_tests(name.text)),
        ErrorCode::kUnimplemented);
  }
  const Token& next = tokens_.peek();
  static constexpr std::string_view kNoArgument[] = {"else", "or", "and", "if", "is", "not", "in"};
  const bool begins_value =
      next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
      next.kind == TokenKind::kFloat ||
      (next.kind == TokenKind::kName &&
       std::ranges::find(kNoArgument, next.text) == std::end(kNoArgument)) ||
      (next.kind == TokenKind::kOperator && (next.text == "[" || next.text == "{"));
  if (tokens_.is_op("(")) {
    SPUD_TRY(parse_arguments(*node));
  } else if (begins_value) {
    SPUD_TRY(ExprPtr argument, parse_primary());
    SPUD_TRY(argument, parse_postfix(std::move(argument)));
    node->children.push_back(std::move(argument));
  }
  SPUD_TRY(node, finish(std::move(node)));
  if (!negated) return node;
  return finish(make_expr(ExprKind::kNot, line, std::move(node)));
}

}  // namespace spud::tokenizer::jinja
