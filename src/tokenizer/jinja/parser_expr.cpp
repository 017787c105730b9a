// SPDX-License-Identifier: Apache-2.0
// Operators and literals. What follows a value (.name, [index], (...), filters, tests) is in
// parser_postfix.cpp.
#include <charconv>

#include "tokenizer/jinja/make_expr.hpp"
#include "tokenizer/jinja/parser.hpp"

namespace spud::tokenizer::jinja {
namespace {

struct Nesting {
  explicit Nesting(int& count) : count_(++count) {}
  ~Nesting() { --count_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  bool too_deep() const noexcept { return count_ > kMaxNesting; }

 private:
  int& count_;
};

std::unexpected<Error> too_deep(int line) {
  return parse_error(line, fmt::format("nested deeper than the limit of {}", kMaxNesting),
                     ErrorCode::kResourceExhausted);
}

}  // namespace

Result<void> ExpressionParser::expect_op(std::string_view text) {
  if (tokens_.skip_op(text)) return {};
  return parse_error(tokens_.line(),
                     fmt::format("expected '{}', found {}", text, describe(tokens_.peek())));
}

// Every node passes here once its children are complete.
Result<ExprPtr> ExpressionParser::finish(ExprPtr node) {
  for (const ExprPtr& child : node->children) {
    if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
  }
  for (const auto& [name, child] : node->named) {
    node->depth = std::max(node->depth, child->depth + 1);
  }
  if (node->depth <= kMaxTreeDepth) return node;
  return parse_error(node->line, fmt::format("an expression of more than {} steps", kMaxTreeDepth),
                     ErrorCode::kResourceExhausted);
}

Result<ExprPtr> ExpressionParser::parse(bool allow_conditional) {
  const Nesting nesting(nesting_);
  if (nesting.too_deep()) return too_deep(tokens_.line());
  SPUD_TRY(ExprPtr node, parse_or());
  while (allow_conditional && tokens_.is_name("if")) {
    const int line = tokens_.take().line;
    SPUD_TRY(ExprPtr condition, parse_or());
    ExprPtr otherwise;
    if (tokens_.skip_name("else")) {
      SPUD_TRY(otherwise, parse(true));
    }
    SPUD_TRY(node, finish(make_expr(ExprKind::kConditional, line, std::move(node),
                                    std::move(condition), std::move(otherwise))));
  }
  return node;
}

Result<ExprPtr> ExpressionParser::parse_tuple(bool allow_conditional) {
  const int line = tokens_.line();
  SPUD_TRY(ExprPtr first, parse(allow_conditional));
  if (!tokens_.is_op(",")) return first;
  ExprPtr tuple = make_expr(ExprKind::kTuple, line, std::move(first));
  while (tokens_.skip_op(",")) {
    if (tokens_.is(TokenKind::kPrintEnd) || tokens_.is(TokenKind::kBlockEnd) ||
        tokens_.is_op(")")) {
      break;
    }
    SPUD_TRY(ExprPtr item, parse(allow_conditional));
    tuple->children.push_back(std::move(item));
  }
  return finish(std::move(tuple));
}

Result<ExprPtr> ExpressionParser::parse_or() {
  SPUD_TRY(ExprPtr left, parse_and());
  while (tokens_.is_name("or")) {
    const int line = tokens_.take().line;
    SPUD_TRY(ExprPtr right, parse_and());
    SPUD_TRY(left, finish(make_expr(ExprKind::kOr, line, std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_and() {
  SPUD_TRY(ExprPtr left, parse_not());
  while (tokens_.is_name("and")) {
    const int line = tokens_.take().line;
    SPUD_TRY(ExprPtr right, parse_not());
    SPUD_TRY(left, finish(make_expr(ExprKind::kAnd, line, std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_not() {
  if (!tokens_.is_name("not")) return parse_compare();
  const Nesting nesting(nesting_);
  if (nesting.too_deep()) return too_deep(tokens_.line());
  const int line = tokens_.take().line;
  SPUD_TRY(ExprPtr operand, parse_not());
  return finish(make_expr(ExprKind::kNot, line, std::move(operand)));
}

Result<ExprPtr> ExpressionParser::parse_compare() {
  static constexpr BinaryOp kOps[] = {{"==", Op::kEq}, {"!=", Op::kNe}, {"<", Op::kLt},
                                      {"<=", Op::kLe}, {">", Op::kGt},  {">=", Op::kGe}};
  SPUD_TRY(ExprPtr first, parse_sum());
  ExprPtr chain;
  while (true) {
    const int line = tokens_.line();
    std::optional<Op> op;
    for (const BinaryOp& known : kOps) {
      if (!op && tokens_.skip_op(known.text)) op = known.op;
    }
    if (!op && tokens_.skip_name("in")) op = Op::kIn;
    if (!op && tokens_.is_name("not") && tokens_.peek(1).text == "in") {
      tokens_.take();
      tokens_.take();
      op = Op::kNotIn;
    }
    if (!op) break;
    if (chain == nullptr) chain = make_expr(ExprKind::kCompare, line, std::move(first));
    SPUD_TRY(ExprPtr next, parse_sum());
    chain->ops.push_back(*op);
    chain->children.push_back(std::move(next));
  }
  if (chain == nullptr) return first;
  return finish(std::move(chain));
}

Result<ExprPtr> ExpressionParser::parse_binary(Level next, std::span<const BinaryOp> ops) {
  SPUD_TRY(ExprPtr left, (this->*next)());
  while (true) {
    const int line = tokens_.line();
    const BinaryOp* found = nullptr;
    for (const BinaryOp& op : ops) {
      if (found == nullptr && tokens_.skip_op(op.text)) found = &op;
    }
    if (found == nullptr) return left;
    SPUD_TRY(ExprPtr right, (this->*next)());
    ExprPtr node = make_expr(ExprKind::kBinary, line, std::move(left), std::move(right));
    node->op = found->op;
    SPUD_TRY(left, finish(std::move(node)));
  }
}

Result<ExprPtr> ExpressionParser::parse_sum() {
  static constexpr BinaryOp kOps[] = {{"+", Op::kAdd}, {"-", Op::kSub}};
  return parse_binary(&ExpressionParser::parse_concat, kOps);
}

Result<ExprPtr> ExpressionParser::parse_concat() {
  static constexpr BinaryOp kOps[] = {{"~", Op::kConcat}};
  return parse_binary(&ExpressionParser::parse_product, kOps);
}

Result<ExprPtr> ExpressionParser::parse_product() {
  static constexpr BinaryOp kOps[] = {
      {"*", Op::kMul}, {"/", Op::kDiv}, {"//", Op::kFloorDiv}, {"%", Op::kMod}};
  return parse_binary(&ExpressionParser::parse_power, kOps);
}

Result<ExprPtr> ExpressionParser::parse_power() {
  static constexpr BinaryOp kOps[] = {{"**", Op::kPow}};
  SPUD_TRY(ExprPtr left, parse_unary(true));
  while (tokens_.is_op("**")) {
    const int line = tokens_.take().line;
    SPUD_TRY(ExprPtr right, parse_unary(true));
    ExprPtr node = make_expr(ExprKind::kBinary, line, std::move(left), std::move(right));
    node->op = kOps[0].op;
    SPUD_TRY(left, finish(std::move(node)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_unary(bool with_filter) {
  ExprPtr node;
  if (tokens_.is_op("-") || tokens_.is_op("+")) {
    const Nesting nesting(nesting_);
    if (nesting.too_deep()) return too_deep(tokens_.line());
    const Token sign = tokens_.take();
    SPUD_TRY(ExprPtr operand, parse_unary(false));
    ExprPtr unary = make_expr(ExprKind::kUnary, sign.line, std::move(operand));
    unary->op = sign.text == "-" ? Op::kSub : Op::kAdd;
    SPUD_TRY(node, finish(std::move(unary)));
  } else {
    SPUD_TRY(node, parse_primary());
  }
  SPUD_TRY(node, parse_postfix(std::move(node)));
  if (!with_filter) return node;
  return parse_filters_and_tests(std::move(node));
}

Result<ExprPtr> ExpressionParser::parse_primary() {
  const Token token = tokens_.peek();
  ExprPtr node = make_expr(ExprKind::kLiteral, token.line);
  switch (token.kind) {
    case TokenKind::kName: {
      tokens_.take();
      const std::string& name = token.text;
      if (name == "true" || name == "True") {
        node->literal = Value::boolean(true);
      } else if (name == "false" || name == "False") {
        node->literal = Value::boolean(false);
      } else if (name == "none" || name == "None") {
        node->literal = Value::none();
      } else {
        node->kind = ExprKind::kName;
        node->name = name;
      }
      return node;
    }
    case TokenKind::kString: {
      std::string text;
      while (tokens_.is(TokenKind::kString)) text += tokens_.take().text;
      node->literal = Value::text(text);
      return node;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    case TokenKind::kOperator:
      if (token.text == "(") return parse_parenthesis();
      if (token.text == "[") return parse_list();
      if (token.text == "{") return parse_dict();
      break;
    default:
      break;
  }
  return parse_error(token.line, fmt::format("expected a value, found {}", describe(token)));
}

Result<ExprPtr> ExpressionParser::parse_number() {
  const Token token = tokens_.take();
  ExprPtr node = make_expr(ExprKind::kLiteral, token.line);
  const char* end = token.text.data() + token.text.size();
  std::from_chars_result done{};
  if (token.kind == TokenKind::kInteger) {
    std::int64_t value = 0;
    done = std::from_chars(token.text.data(), end, value);
    node->literal = Value::integer(value);
  } else {
    double value = 0;
    done = std::from_chars(token.text.data(), end, value);
    node->literal = Value::number(value);
  }
  if (done.ec == std::errc() && done.ptr == end) return node;
  return parse_error(token.line,
                     fmt::format("the number '{}' is out of range", token.text.substr(0, 40)));
}

Result<ExprPtr> ExpressionParser::parse_parenthesis() {
  const int line = tokens_.take().line;
  if (tokens_.skip_op(")")) return make_expr(ExprKind::kTuple, line);
  SPUD_TRY(ExprPtr inner, parse_tuple());
  SPUD_TRY(expect_op(")"));
  return inner;
}

Result<ExprPtr> ExpressionParser::parse_list() {
  ExprPtr list = make_expr(ExprKind::kList, tokens_.take().line);
  while (!tokens_.is_op("]")) {
    SPUD_TRY(ExprPtr item, parse());
    list->children.push_back(std::move(item));
    if (!tokens_.skip_op(",")) break;
  }
  SPUD_TRY(expect_op("]"));
  return finish(std::move(list));
}

Result<ExprPtr> ExpressionParser::parse_dict() {
  ExprPtr dict = make_expr(ExprKind::kDict, tokens_.take().line);
  while (!tokens_.is_op("}")) {
    SPUD_TRY(ExprPtr key, parse());
    SPUD_TRY(expect_op(":"));
    SPUD_TRY(ExprPtr value, parse());
    dict->children.push_back(std::move(key));
    dict->children.push_back(std::move(value));
    if (!tokens_.skip_op(",")) break;
  }
  SPUD_TRY(expect_op("}"));
  return finish(std::move(dict));
}

}  // namespace spud::tokenizer::jinja
