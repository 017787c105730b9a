// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja/lexer.hpp"

#include <algorithm>

#include "tokenizer/utf8.hpp"

namespace spud::tokenizer::jinja {
namespace {

constexpr std::string_view kSpace = " \t\n\r\f\v";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
    } else {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      const std::size_t open = find_open(at_);
      if (open == std::string::npos) {
        push_text(source_.substr(at_), 0);
        break;
      }
      SPUD_TRY(tag(open));
    }
    tokens_.push_back({TokenKind::kEnd, "", line_});
    return std::move(tokens_);
  }

 private:
  std::string_view view() const { return source_; }
  bool looking_at(std::string_view text) const { return view().substr(at_).starts_with(text); }

  std::unexpected<Error> wrong(int line, std::string_view what) const {
    return fail(ErrorCode::kInvalidArgument, "chat template line {}: {}", line, what);
  }

  std::size_t find_open(std::size_t from) const {
    for (std::size_t i = source_.find('{', from); i != std::string::npos;
         i = source_.find('{', i + 1)) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return std::string::npos;
  }

  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  // `text` as the output shows it; `consumed` bytes of the source are passed.
  void push_text(std::string text, std::size_t consumed) {
    if (!text.empty()) tokens_.push_back({TokenKind::kText, std::move(text), line_});
    advance(std::max(at_ + consumed, at_));
  }

  // The text before a tag, its end trimmed as the tag asks.
  std::string trimmed_before(std::size_t open, char sign, bool is_print) const {
    std::string text = source_.substr(at_, open - at_);
    if (sign == '-') {
      text.erase(text.find_last_not_of(kSpace) + 1);
    } else if (sign != '+' && !is_print) {
      // lstrip_blocks: a tag alone at the start of its line swallows the indentation.
      const std::size_t newline = text.rfind('\n');
      const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
      const bool line_start = newline != std::string::npos || at_line_start_;
      if (line_start && text.find_first_not_of(kSpace, begin) == std::string::npos) {
        text.erase(begin);
      }
    }
    return text;
  }

  Result<void> tag(std::size_t open) {
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : ' ';
    const bool is_print = kind == '{';
    const bool signed_open = sign == '-' || (sign == '+' && kind != '#');
    push_text(trimmed_before(open, sign, is_print), open - at_);
    advance(open + (signed_open ? 3 : 2));
    if (kind == '#') return comment();
    if (!is_print) {
      SPUD_TRY(const bool was_raw, raw_block());
      if (was_raw) return {};
    }
    tokens_.push_back({is_print ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, "", line_});
    return expression(is_print ? "}}" : "%}", is_print);
  }

  Result<void> comment() {
    const int line = line_;
    const std::size_t close = source_.find("#}", at_);
    if (close == std::string::npos) return wrong(line, "a comment '{#' is not closed");
    const bool trim = close > at_ && source_[close - 1] == '-';
    const bool keep = close > at_ && source_[close - 1] == '+';
    advance(close + 2);
    after_tag(trim, !keep);
    return {};
  }

  // White space after a closing tag.
  void after_tag(bool trim, bool trim_newline) {
    at_line_start_ = false;
    if (trim) {
      std::size_t next = source_.find_first_not_of(kSpace, at_);
      if (next == std::string::npos) next = source_.size();
      at_line_start_ = next > at_ && source_[next - 1] == '\n';
      advance(next);
    } else if (trim_newline && at_ < source_.size() && source_[at_] == '\n') {
      at_line_start_ = true;
      advance(at_ + 1);
    }
  }

  // {% raw %}...{% endraw %}, met behind the "{%". False when it is another tag.
  Result<bool> raw_block() {
    std::size_t i = source_.find_first_not_of(kSpace, at_);
    if (i == std::string::npos || source_.compare(i, 3, "raw") != 0) return false;
    i = source_.find_first_not_of(kSpace, i + 3);
    if (i == std::string::npos) return false;
    const bool trim = source_[i] == '-';
    if (trim) ++i;
    if (source_.compare(i, 2, "%}") != 0) return false;
    const int line = line_;
    advance(i + 2);
    after_tag(trim, false);
    for (std::size_t open = source_.find("{%", at_); open != std::string::npos;
         open = source_.find("{%", open + 1)) {
      const char sign = open + 2 < source_.size() ? source_[open + 2] : ' ';
      std::size_t j = open + (sign == '-' || sign == '+' ? 3 : 2);
      j = source_.find_first_not_of(kSpace, j);
      if (j == std::string::npos || source_.compare(j, 6, "endraw") != 0) continue;
      j = source_.find_first_not_of(kSpace, j + 6);
      if (j == std::string::npos) continue;
      const bool trim_after = source_[j] == '-';
      if (trim_after) ++j;
      if (source_.compare(j, 2, "%}") != 0) continue;
      push_text(trimmed_before(open, sign, false), j + 2 - at_);
      after_tag(trim_after, true);
      return true;
    }
    return wrong(line, "'{% raw %}' is not closed by '{% endraw %}'");
  }

  Result<void> expression(std::string_view close, bool is_print) {
    const int line = line_;
    std::vector<char> open_brackets;
    while (true) {
      const std::size_t next = source_.find_first_not_of(kSpace, at_);
      if (next == std::string::npos) break;
      advance(next);
      if (open_brackets.empty()) {
        const bool trim = source_[at_] == '-' && view().substr(at_ + 1).starts_with(close);
        const bool keep = source_[at_] == '+' && view().substr(at_ + 1).starts_with(close);
        if (trim || keep || looking_at(close)) {
          tokens_.push_back({is_print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd, "", line_});
          advance(at_ + close.size() + (trim || keep ? 1 : 0));
          after_tag(trim, !is_print && !keep);
          return {};
        }
      }
      SPUD_TRY(token(open_brackets));
    }
    return wrong(line, fmt::format("a tag is not closed by '{}'", close));
  }

  Result<void> token(std::vector<char>& open_brackets) {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return string(c);
    if (is_digit(c)) return number();
    if (is_name_start(c)) {
      std::size_t end = at_;
      while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
      return take(TokenKind::kName, end);
    }
    for (const std::string_view op : {"**", "//", "==", "!=", "<=", ">="}) {
      if (looking_at(op)) return take(TokenKind::kOperator, at_ + 2);
    }
    if (std::string_view("+-*/%~<>=.:|,;()[]{}").find(c) == std::string_view::npos) {
      return wrong(line_, fmt::format("unexpected character '{}'", c));
    }
    if (c == '(' || c == '[' || c == '{') open_brackets.push_back(c);
    if (c == ')' || c == ']' || c == '}') {
      const char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_brackets.empty() || open_brackets.back() != opener) {
        return wrong(line_, fmt::format("unexpected '{}'", c));
      }
      open_brackets.pop_back();
    }
    return take(TokenKind::kOperator, at_ + 1);
  }

  Result<void> take(TokenKind kind, std::size_t end) {
    tokens_.push_back({kind, source_.substr(at_, end - at_), line_});
    advance(end);
    return {};
  }

  Result<void> number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) || source_[end] == '_')) ++end;
    };
    const auto digit_at = [&](std::size_t i) { return i < source_.size() && is_digit(source_[i]); };
    digits();
    bool is_float = false;
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      is_float = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const std::size_t sign =
          end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
      if (digit_at(end + 1 + sign)) {
        is_float = true;
        end += 1 + sign;
        digits();
      }
    }
    SPUD_TRY(take(is_float ? TokenKind::kFloat : TokenKind::kInteger, end));
    std::erase(tokens_.back().text, '_');
    return {};
  }

  Result<void> string(char quote) {
    const int line = line_;
    std::string text;
    std::size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) {
      if (source_[i] != '\\' || i + 1 >= source_.size()) {
        text.push_back(source_[i++]);
        continue;
      }
      i = escape(i + 1, text);
    }
    if (i >= source_.size()) return wrong(line, "a string is not closed");
    tokens_.push_back({TokenKind::kString, std::move(text), line});
    advance(i + 1);
    return {};
  }

  // Appends what the escape whose letter is at `i` stands for (Python's rules; an unknown one stays
  // as written) and returns the position behind it.
  std::size_t escape(std::size_t i, std::string& text) const {
    const char c = source_[i];
    static constexpr std::string_view kLetters = "\\'\"abfnrtv\n";
    static constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    const std::size_t known = kLetters.find(c);
    if (known != std::string_view::npos) {
      if (c != '\n') text.push_back(kMeaning[known]);
      return i + 1;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const std::string hex = source_.substr(std::min(i + 1, source_.size()), digits);
    const bool all_hex = hex.size() == digits && digits > 0 &&
                         hex.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    const unsigned long value = all_hex ? std::stoul(hex, nullptr, 16) : 0;
    if (!all_hex || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      text.push_back('\\');
      text.push_back(c);
      return i + 1;
    }
    utf8_append(static_cast<char32_t>(value), text);
    return i + 1 + digits;
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace spud::tokenizer::jinja
