// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja/print.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tokenizer/utf8.hpp"

namespace spud::tokenizer::jinja {
namespace {

bool is_printable(char32_t code_point) {
  if (code_point < 0x7F) return code_point >= 0x20;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string repr_escape(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c < 0x100) return fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  return fmt::format("\\U{:08x}", static_cast<unsigned>(c));
}

std::string json_escape(char32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default:
      break;
  }
  if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  const unsigned rest = static_cast<unsigned>(c) - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

// Copies the text, `escape` replacing the characters for which it gives something.
template <typename Escape>
void append_escaped(const Text& text, TextBuilder& out, const Escape& escape) {
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.bytes.size();) {
    const Utf8Step step = utf8_step(std::string_view(text.bytes).substr(i));
    const char32_t c = step.kind == Utf8Kind::kValid
                           ? utf8_decode(std::string_view(text.bytes).substr(i, step.length))
                           : U'\uFFFD';
    const std::string replacement = escape(c);
    if (!replacement.empty()) {
      out.append(text, plain, i);
      out.append_like(text, i, replacement);
      plain = i + step.length;
    }
    i += step.length;
  }
  out.append(text, plain, text.bytes.size());
}

class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  Result<void> repr(const Value& value) {
    SPUD_TRY(budget_.bytes(out_.size() - charged_));
    charged_ = out_.size();
    if (const Text* text = value.as_text()) {
      repr_text(*text);
    } else if (const List* list = value.as_list()) {
      out_.append(list->tuple ? "(" : "[");
      for (std::size_t i = 0; i < list->items.size(); ++i) {
        if (i > 0) out_.append(", ");
        SPUD_TRY(repr(list->items[i]));
      }
      if (list->tuple && list->items.size() == 1) out_.append(",");
      out_.append(list->tuple ? ")" : "]");
    } else if (const Dict* dict = value.as_dict()) {
      out_.append("{");
      for (std::size_t i = 0; i < dict->entries.size(); ++i) {
        if (i > 0) out_.append(", ");
        repr_text(*dict->entries[i].key);
        out_.append(": ");
        SPUD_TRY(repr(dict->entries[i].value));
      }
      out_.append("}");
    } else {
      out_.append(scalar(value));
    }
    return {};
  }

  Result<void> json(const Value& value, const JsonStyle& style, int level) {
    SPUD_TRY(budget_.bytes(out_.size() - charged_));
    charged_ = out_.size();
    if (const Text* text = value.as_text()) {
      json_text(*text, style);
      return {};
    }
    if (const List* list = value.as_list()) return json_list(*list, style, level);
    if (const Dict* dict = value.as_dict()) return json_dict(*dict, style, level);
    if (value.is_none()) {
      out_.append("null");
    } else if (const bool* boolean = value.get<bool>()) {
      out_.append(*boolean ? "true" : "false");
    } else if (const double* number = value.get<double>()) {
      out_.append(std::isnan(*number)   ? "NaN"
                  : std::isinf(*number) ? (*number > 0 ? "Infinity" : "-Infinity")
                                        : python_float(*number));
    } else if (value.is_number()) {
      out_.append(scalar(value));
    } else {
      return fail(ErrorCode::kInvalidArgument, "{} cannot be written as JSON", value.type_name());
    }
    return {};
  }

  Text take() { return out_.take(); }

  static std::string scalar(const Value& value) {
    if (value.is_undefined()) return "";
    if (value.is_none()) return "None";
    if (const bool* boolean = value.get<bool>()) return *boolean ? "True" : "False";
    if (const auto* integer = value.get<std::int64_t>()) return std::to_string(*integer);
    if (const double* number = value.get<double>()) return python_float(*number);
    return fmt::format("<{}>", value.type_name());
  }

 private:
  void repr_text(const Text& text) {
    const bool has_single = text.bytes.find('\'') != std::string::npos;
    const char quote = has_single && text.bytes.find('"') == std::string::npos ? '"' : '\'';
    out_.append(std::string_view(&quote, 1));
    append_escaped(text, out_, [quote](char32_t c) -> std::string {
      if (c == U'\\') return "\\\\";
      if (c == static_cast<char32_t>(quote)) return std::string("\\") + quote;
      return is_printable(c) ? "" : repr_escape(c);
    });
    out_.append(std::string_view(&quote, 1));
  }

  void json_text(const Text& text, const JsonStyle& style) {
    out_.append("\"");
    append_escaped(text, out_, [&](char32_t c) -> std::string {
      const bool special = c == '"' || c == '\\' || c < 0x20;
      return special || (style.ensure_ascii && c > 0x7E) ? json_escape(c) : "";
    });
    out_.append("\"");
  }

  Result<void> new_line(const JsonStyle& style, int level) {
    if (style.indent < 0) return {};
    const std::size_t width =
        static_cast<std::size_t>(style.indent) * static_cast<std::size_t>(level);
    SPUD_TRY(budget_.bytes(width));
    out_.append("\n" + std::string(width, ' '));
    return {};
  }

  Result<void> json_list(const List& list, const JsonStyle& style, int level) {
    if (list.items.empty()) {
      out_.append("[]");
      return {};
    }
    out_.append("[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.append(style.item_separator);
      SPUD_TRY(new_line(style, level + 1));
      SPUD_TRY(json(list.items[i], style, level + 1));
    }
    SPUD_TRY(new_line(style, level));
    out_.append("]");
    return {};
  }

  Result<void> json_dict(const Dict& dict, const JsonStyle& style, int level) {
    if (dict.entries.empty()) {
      out_.append("{}");
      return {};
    }
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries) entries.push_back(&entry);
    if (style.sort_keys) {
      std::ranges::sort(entries, {}, [](const Dict::Entry* entry) -> const std::string& {
        return entry->key->bytes;
      });
    }
    out_.append("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.append(style.item_separator);
      SPUD_TRY(new_line(style, level + 1));
      json_text(*entries[i]->key, style);
      out_.append(style.key_separator);
      SPUD_TRY(json(entries[i]->value, style, level + 1));
    }
    SPUD_TRY(new_line(style, level));
    out_.append("}");
    return {};
  }

  Budget& budget_;
  TextBuilder out_;
  std::size_t charged_ = 0;
};

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  // Shortest digits that read back; Python switches to an exponent below 1e-4 and from 1e16 on.
  const double size = std::fabs(value);
  const bool fixed = value == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto done = std::to_chars(buffer, buffer + sizeof(buffer), value, format);
  std::string text(buffer, done.ptr);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

Result<TextPtr> to_text(Budget& budget, const Value& value) {
  if (const TextPtr* text = value.get<TextPtr>()) return *text;
  if (value.as_list() == nullptr && value.as_dict() == nullptr) {
    return std::make_shared<const Text>(Text{.bytes = Printer::scalar(value), .user = {}});
  }
  Printer printer(budget);
  SPUD_TRY(printer.repr(value));
  return std::make_shared<const Text>(printer.take());
}

Result<Value> to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  Printer printer(budget);
  SPUD_TRY(printer.json(value, style, 0));
  return Value::text(printer.take());
}

}  // namespace spud::tokenizer::jinja
