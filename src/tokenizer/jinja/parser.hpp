// SPDX-License-Identifier: Apache-2.0
// Builds the trees of ast.hpp. Nesting is bounded, so no template can exhaust the stack; a tag,
// filter or test that we do not have is kUnimplemented and named with its line.
#pragma once

#include "base/result.hpp"
#include "tokenizer/jinja/ast.hpp"
#include "tokenizer/jinja/lexer.hpp"

namespace spud::tokenizer::jinja {

[[nodiscard]] Result<Block> parse_template(std::string_view source);

// One position in the tokens; what both halves of the parser share.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  const Token& peek(std::size_t ahead = 0) const noexcept {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token take() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is(TokenKind kind) const noexcept { return peek().kind == kind; }
  bool is_op(std::string_view text) const noexcept {
    return is(TokenKind::kOperator) && peek().text == text;
  }
  bool is_name(std::string_view text) const noexcept {
    return is(TokenKind::kName) && peek().text == text;
  }
  bool skip_op(std::string_view text) { return is_op(text) && (take(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (take(), true); }
  int line() const noexcept { return peek().line; }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

// Shared by statements and expressions.
inline constexpr int kMaxNesting = 100;
inline constexpr int kMaxTreeDepth = 250;
std::unexpected<Error> parse_error(int line, std::string_view what,
                                   ErrorCode code = ErrorCode::kInvalidArgument);
// "'%}'", "name 'for'": a token as a message shows it.
std::string describe(const Token& token);

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}
  // `allow_conditional`: "a if b else c" is one expression (not in "for x in a if b").
  [[nodiscard]] Result<ExprPtr> parse(bool allow_conditional = true);
  // As parse(), but "a, b" makes a tuple.
  [[nodiscard]] Result<ExprPtr> parse_tuple(bool allow_conditional = true);
  // "| upper | replace('a', 'b')" with null inputs, for blocks. `first_without_bar`: the name comes
  // at once.
  [[nodiscard]] Result<std::vector<ExprPtr>> parse_filter_chain(bool first_without_bar);

 private:
  [[nodiscard]] Result<ExprPtr> parse_or();
  [[nodiscard]] Result<ExprPtr> parse_and();
  [[nodiscard]] Result<ExprPtr> parse_not();
  [[nodiscard]] Result<ExprPtr> parse_compare();
  [[nodiscard]] Result<ExprPtr> parse_sum();
  [[nodiscard]] Result<ExprPtr> parse_concat();
  [[nodiscard]] Result<ExprPtr> parse_product();
  [[nodiscard]] Result<ExprPtr> parse_power();
  [[nodiscard]] Result<ExprPtr> parse_unary(bool with_filter);
  [[nodiscard]] Result<ExprPtr> parse_primary();
  [[nodiscard]] Result<ExprPtr> parse_number();
  [[nodiscard]] Result<ExprPtr> parse_parenthesis();
  [[nodiscard]] Result<ExprPtr> parse_list();
  [[nodiscard]] Result<ExprPtr> parse_dict();
  [[nodiscard]] Result<ExprPtr> parse_postfix(ExprPtr object);
  [[nodiscard]] Result<ExprPtr> parse_subscript(ExprPtr object);
  [[nodiscard]] Result<ExprPtr> parse_filters_and_tests(ExprPtr input);
  [[nodiscard]] Result<ExprPtr> parse_filter(ExprPtr input);
  [[nodiscard]] Result<ExprPtr> parse_test(ExprPtr input);
  [[nodiscard]] Result<void> parse_arguments(Expr& call);
  using Level = Result<ExprPtr> (ExpressionParser::*)();
  struct BinaryOp {
    std::string_view text;
    Op op;
  };
  [[nodiscard]] Result<ExprPtr> parse_binary(Level next, std::span<const BinaryOp> ops);
  [[nodiscard]] Result<ExprPtr> finish(ExprPtr node);
  [[nodiscard]] Result<void> expect_op(std::string_view text);

  TokenStream& tokens_;
  int nesting_ = 0;
};

}  // namespace spud::tokenizer::jinja
