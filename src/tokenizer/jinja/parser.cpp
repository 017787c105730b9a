// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja/parser.hpp"

#include <algorithm>

namespace spud::tokenizer::jinja {
namespace {

class StatementParser {
 public:
  explicit StatementParser(TokenStream& tokens) : tokens_(tokens), expressions_(tokens) {}

  // Up to a tag that begins with one of `ends` (which stays), or the end of the template.
  Result<Block> block(std::span<const std::string_view> ends) {
    Block block;
    while (!tokens_.is(TokenKind::kEnd)) {
      if (tokens_.is(TokenKind::kText)) {
        const Token token = tokens_.take();
        auto statement = make(StmtKind::kText, token.line);
        statement->text = token.text;
        block.push_back(std::move(statement));
      } else if (tokens_.is(TokenKind::kPrintBegin)) {
        SPUD_TRY(auto statement, print());
        block.push_back(std::move(statement));
      } else {
        const Token& name = tokens_.peek(1);
        if (name.kind == TokenKind::kName && std::ranges::find(ends, name.text) != ends.end()) {
          return block;
        }
        SPUD_TRY(tag(block));
      }
    }
    if (ends.empty()) return block;
    return parse_error(tokens_.line(),
                       fmt::format("the template ends without '{{% {} %}}'", ends.back()));
  }

 private:
  using StmtPtr = std::unique_ptr<Stmt>;

  static StmtPtr make(StmtKind kind, int line) {
    auto statement = std::make_unique<Stmt>();
    statement->kind = kind;
    statement->line = line;
    return statement;
  }

  Result<void> expect_end(TokenKind kind) {
    const Token token = tokens_.take();
    if (token.kind == kind) return {};
    return parse_error(token.line,
                       fmt::format("expected '{}', found {}",
                                   kind == TokenKind::kPrintEnd ? "}}" : "%}", describe(token)));
  }

  Result<std::string> expect_name(std::string_view what) {
    const Token token = tokens_.take();
    if (token.kind == TokenKind::kName) return token.text;
    return parse_error(token.line, fmt::format("expected {}, found {}", what, describe(token)));
  }

  Result<StmtPtr> print() {
    auto statement = make(StmtKind::kPrint, tokens_.take().line);
    SPUD_TRY(ExprPtr value, expressions_.parse_tuple());
    SPUD_TRY(expect_end(TokenKind::kPrintEnd));
    statement->exprs.push_back(std::move(value));
    return statement;
  }

  // The tag's body up to {% end %}; both tags are taken.
  Result<Block> body(std::string_view end) {
    SPUD_TRY(expect_end(TokenKind::kBlockEnd));
    const std::string_view ends[] = {end};
    SPUD_TRY(Block inner, block(ends));
    tokens_.take();
    tokens_.take();
    // "{% endmacro name %}" and the like.
    if (tokens_.is(TokenKind::kName)) tokens_.take();
    SPUD_TRY(expect_end(TokenKind::kBlockEnd));
    return inner;
  }

  Result<void> tag(Block& out) {
    const int line = tokens_.take().line;
    if (++nesting_ > kMaxNesting) {
      return parse_error(line, fmt::format("nested deeper than the limit of {}", kMaxNesting),
                         ErrorCode::kResourceExhausted);
    }
    SPUD_TRY(const std::string name, expect_name("a tag"));
    auto made = statement(name, line, out);
    if (!made) return std::unexpected(std::move(made).error());
    if (*made != nullptr) out.push_back(*std::move(made));
    --nesting_;
    return {};
  }

  // Null when the statements went to `out` themselves.
  Result<StmtPtr> statement(const std::string& name, int line, Block& out) {
    if (name == "if") return if_tag(line);
    if (name == "for") return for_tag(line);
    if (name == "set") return set_tag(line);
    if (name == "macro") return macro_tag(line);
    if (name == "filter") return filter_tag(line);
    if (name == "with") return with_tag(line);
    if (name == "break" || name == "continue") return jump_tag(name, line);
    if (name == "generation") {
      // Marks the assistant's text for training; what is inside is printed as it is.
      SPUD_TRY(Block inner, body("endgeneration"));
      std::ranges::move(inner, std::back_inserter(out));
      return nullptr;
    }
    static constexpr std::string_view kUnsupported[] = {"include",    "import", "from", "extends",
                                                        "block",      "call",   "do",   "trans",
                                                        "autoescape", "debug",  "raw"};
    if (std::ranges::find(kUnsupported, name) != std::end(kUnsupported)) {
      return parse_error(line, fmt::format("the tag '{{% {} %}}' is not supported", name),
                         ErrorCode::kUnimplemented);
    }
    return parse_error(line, fmt::format("unexpected tag '{{% {} %}}'", name.substr(0, 60)),
                       name.starts_with("end") || name.starts_with("el")
                           ? ErrorCode::kInvalidArgument
                           : ErrorCode::kUnimplemented);
  }

  Result<StmtPtr> if_tag(int line) {
    auto statement = make(StmtKind::kIf, line);
    static constexpr std::string_view kEnds[] = {"elif", "else", "endif"};
    std::string tag = "if";
    while (tag != "endif") {
      if (tag != "else") {
        if (statement->blocks.size() > statement->exprs.size()) {
          return parse_error(tokens_.line(), "'{% elif %}' after '{% else %}'");
        }
        SPUD_TRY(ExprPtr condition, expressions_.parse_tuple());
        statement->exprs.push_back(std::move(condition));
      } else if (statement->blocks.size() > statement->exprs.size()) {
        return parse_error(tokens_.line(), "a second '{% else %}'");
      }
      SPUD_TRY(expect_end(TokenKind::kBlockEnd));
      SPUD_TRY(Block inner, block(kEnds));
      statement->blocks.push_back(std::move(inner));
      tokens_.take();
      tag = tokens_.take().text;
    }
    SPUD_TRY(expect_end(TokenKind::kBlockEnd));
    return statement;
  }

  Result<void> target_names(std::vector<std::string>& names) {
    const bool parenthesis = tokens_.skip_op("(");
    do {
      SPUD_TRY(std::string name, expect_name("a variable"));
      names.push_back(std::move(name));
    } while (tokens_.skip_op(","));
    if (parenthesis && !tokens_.skip_op(")")) {
      return parse_error(tokens_.line(), "expected ')' after the variables");
    }
    return {};
  }

  Result<StmtPtr> for_tag(int line) {
    auto statement = make(StmtKind::kFor, line);
    SPUD_TRY(target_names(statement->names));
    if (!tokens_.skip_name("in")) {
      return parse_error(tokens_.line(),
                         fmt::format("expected 'in', found {}", describe(tokens_.peek())));
    }
    SPUD_TRY(ExprPtr iterable, expressions_.parse_tuple(false));
    statement->exprs.push_back(std::move(iterable));
    ExprPtr filter;
    if (tokens_.skip_name("if")) {
      SPUD_TRY(filter, expressions_.parse());
    }
    statement->exprs.push_back(std::move(filter));
    if (tokens_.is_name("recursive")) {
      return parse_error(line, "a recursive loop is not supported", ErrorCode::kUnimplemented);
    }
    SPUD_TRY(expect_end(TokenKind::kBlockEnd));
    static constexpr std::string_view kEnds[] = {"else", "endfor"};
    ++loops_;
    SPUD_TRY(Block inner, block(kEnds));
    --loops_;
    statement->blocks.push_back(std::move(inner));
    tokens_.take();
    Block otherwise;
    if (tokens_.take().text == "else") {
      SPUD_TRY(otherwise, body("endfor"));
    } else {
      SPUD_TRY(expect_end(TokenKind::kBlockEnd));
    }
    statement->blocks.push_back(std::move(otherwise));
    return statement;
  }

  Result<StmtPtr> set_tag(int line) {
    auto statement = make(StmtKind::kSet, line);
    SPUD_TRY(target_names(statement->names));
    if (statement->names.size() == 1 && tokens_.skip_op(".")) {
      SPUD_TRY(std::string member, expect_name("a member"));
      statement->names.push_back(std::move(member));
      statement->is_member = true;
    }
    if (tokens_.skip_op("=")) {
      SPUD_TRY(ExprPtr value, expressions_.parse_tuple());
      statement->exprs.push_back(std::move(value));
      SPUD_TRY(expect_end(TokenKind::kBlockEnd));
      return statement;
    }
    if (statement->names.size() != 1 + (statement->is_member ? 1u : 0u)) {
      return parse_error(line, "a '{% set %}' block sets one variable");
    }
    statement->kind = StmtKind::kSetBlock;
    SPUD_TRY(statement->exprs, expressions_.parse_filter_chain(false));
    SPUD_TRY(Block inner, body("endset"));
    statement->blocks.push_back(std::move(inner));
    return statement;
  }

  Result<StmtPtr> macro_tag(int line) {
    auto statement = make(StmtKind::kMacro, line);
    SPUD_TRY(statement->text, expect_name("the macro's name"));
    if (!tokens_.skip_op("(")) return parse_error(line, "expected '(' after the macro's name");
    while (!tokens_.is_op(")")) {
      SPUD_TRY(std::string name, expect_name("a parameter"));
      ExprPtr fallback;
      if (tokens_.skip_op("=")) {
        SPUD_TRY(fallback, expressions_.parse());
      }
      statement->names.push_back(std::move(name));
      statement->exprs.push_back(std::move(fallback));
      if (!tokens_.skip_op(",")) break;
    }
    if (!tokens_.skip_op(")")) {
      return parse_error(tokens_.line(), "expected ')' after the macro's parameters");
    }
    const int loops = std::exchange(loops_, 0);
    SPUD_TRY(Block inner, body("endmacro"));
    loops_ = loops;
    statement->blocks.push_back(std::move(inner));
    return statement;
  }

  Result<StmtPtr> filter_tag(int line) {
    auto statement = make(StmtKind::kFilter, line);
    SPUD_TRY(statement->exprs, expressions_.parse_filter_chain(true));
    SPUD_TRY(Block inner, body("endfilter"));
    statement->blocks.push_back(std::move(inner));
    return statement;
  }

  Result<StmtPtr> with_tag(int line) {
    auto statement = make(StmtKind::kWith, line);
    while (!tokens_.is(TokenKind::kBlockEnd)) {
      SPUD_TRY(std::string name, expect_name("a variable"));
      if (!tokens_.skip_op("=")) return parse_error(line, "expected '=' in '{% with %}'");
      SPUD_TRY(ExprPtr value, expressions_.parse());
      statement->names.push_back(std::move(name));
      statement->exprs.push_back(std::move(value));
      if (!tokens_.skip_op(",")) break;
    }
    SPUD_TRY(Block inner, body("endwith"));
    statement->blocks.push_back(std::move(inner));
    return statement;
  }

  Result<StmtPtr> jump_tag(const std::string& name, int line) {
    if (loops_ == 0) return parse_error(line, fmt::format("'{}' outside of a loop", name));
    SPUD_TRY(expect_end(TokenKind::kBlockEnd));
    return make(name == "break" ? StmtKind::kBreak : StmtKind::kContinue, line);
  }

  TokenStream& tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
  int loops_ = 0;
};

}  // namespace

std::unexpected<Error> parse_error(int line, std::string_view what, ErrorCode code) {
  return fail(code, "chat template line {}: {}", line, what);
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kPrintBegin:
      return "'{{'";
    case TokenKind::kPrintEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return fmt::format("'{}'", token.text.substr(0, 60));
  }
}

Result<Block> parse_template(std::string_view source) {
  SPUD_TRY(std::vector<Token> tokens, tokenize(source));
  TokenStream stream(std::move(tokens));
  return StatementParser(stream).block({});
}

}  // namespace spud::tokenizer::jinja
