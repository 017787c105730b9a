// SPDX-License-Identifier: Apache-2.0
// Filters on single values: strings, numbers, JSON. Those on sequences are in filters_list.cpp.
#include "tokenizer/jinja/filters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/registry.hpp"
#include "tokenizer/jinja/print.hpp"
#include "tokenizer/jinja/strings.hpp"

namespace spud::tokenizer::jinja {
namespace {

// The input as text, as Jinja's string filters take anything.
Result<TextPtr> text_input(Environment& environment, const Value& input) {
  SPUD_TRY(const TextPtr text, to_text(environment.budget, input));
  SPUD_TRY(environment.budget.bytes(text->bytes.size()));
  return text;
}

Result<Value> filter_trim(Environment& environment, const Value& input,
                          const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"chars"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const TextPtr text, text_input(environment, input));
  const Text* characters = bound[0].as_text();
  SPUD_TRY(environment.budget.search(text->bytes.size(),
                                     characters == nullptr ? 0 : characters->bytes.size()));
  return Value::text(strip(*text, characters == nullptr
                                      ? std::nullopt
                                      : std::optional<std::string_view>(characters->bytes)));
}

template <Case kMode>
Result<Value> filter_case(Environment& environment, const Value& input,
                          const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  SPUD_TRY(const TextPtr text, text_input(environment, input));
  return Value::text(change_case(*text, kMode));
}

Result<Value> filter_string(Environment& environment, const Value& input,
                            const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  SPUD_TRY(TextPtr text, to_text(environment.budget, input));
  return Value(Value::Variant(std::move(text)));
}

Result<Value> filter_replace(Environment& environment, const Value& input,
                             const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"old", "new", "count"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const TextPtr text, text_input(environment, input));
  SPUD_TRY(const TextPtr from, to_text(environment.budget, bound[0]));
  SPUD_TRY(const TextPtr to, to_text(environment.budget, bound[1]));
  SPUD_TRY(environment.budget.search(text->bytes.size(), from->bytes.size()));
  SPUD_TRY(Text replaced,
           replace(environment.budget, *text, from->bytes, *to, bound[2].as_int().value_or(-1)));
  return Value::text(std::move(replaced));
}

Result<Value> filter_escape(Environment& environment, const Value& input,
                            const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  SPUD_TRY(const TextPtr text, text_input(environment, input));
  TextBuilder out;
  for (std::size_t i = 0; i < text->bytes.size(); ++i) {
    switch (text->bytes[i]) {
      case '&':
        out.append_like(*text, i, "&amp;");
        break;
      case '<':
        out.append_like(*text, i, "&lt;");
        break;
      case '>':
        out.append_like(*text, i, "&gt;");
        break;
      case '\'':
        out.append_like(*text, i, "&#39;");
        break;
      case '"':
        out.append_like(*text, i, "&#34;");
        break;
      default:
        out.append(*text, i, i + 1);
        break;
    }
  }
  SPUD_TRY(environment.budget.bytes(out.size()));
  return Value::text(out.take());
}

Result<Value> filter_indent(Environment& environment, const Value& input,
                            const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"width", "first", "blank"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const TextPtr text, text_input(environment, input));
  Text indent;
  if (const Text* given_indent = bound[0].as_text()) {
    indent = *given_indent;
  } else {
    SPUD_TRY(indent, repeat(environment.budget, Text{.bytes = " ", .user = {}},
                            given(bound[0]) ? bound[0].as_int().value_or(4) : 4));
  }
  const bool first = bound[1].truth();
  const bool blank = bound[2].truth();
  TextBuilder out;
  std::vector<Text> lines = split_lines(*text);
  // A newline at the end stays, and opens a last empty line.
  if (lines.empty() || text->bytes.ends_with('\n')) lines.emplace_back();
  SPUD_TRY(environment.budget.bytes(text->bytes.size() + lines.size() * indent.bytes.size()));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    const bool indented = i == 0 ? first : blank || !lines[i].bytes.empty();
    if (indented) out.append(indent);
    out.append(lines[i]);
  }
  return Value::text(out.take());
}

Result<Value> filter_default(Environment&, const Value& input, const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"default_value", "boolean"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  const bool absent = input.is_undefined() || (bound[1].truth() && !input.truth());
  if (!absent) return input;
  return given(bound[0]) ? bound[0] : Value::text("");
}

Result<Value> filter_int(Environment&, const Value& input, const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"default", "base"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  const Value fallback = given(bound[0]) ? bound[0] : Value::integer(0);
  const std::int64_t base = bound[1].as_int().value_or(10);
  if (base < 2 || base > 36) {
    return fail(ErrorCode::kInvalidArgument, "int: the base must be 2 to 36, not {}", base);
  }
  if (const auto integer = input.as_int()) return Value::integer(*integer);
  double number = 0;
  if (const auto given_number = input.as_number()) {
    number = *given_number;
  } else {
    const Text* text = input.as_text();
    if (text == nullptr) return fallback;
    const Text stripped = strip(*text, std::nullopt);
    std::string_view digits = stripped.bytes;
    if (digits.starts_with('+')) digits.remove_prefix(1);
    std::int64_t integer = 0;
    const char* end = digits.data() + digits.size();
    const auto done = std::from_chars(digits.data(), end, integer, static_cast<int>(base));
    if (done.ec == std::errc() && done.ptr == end) return Value::integer(integer);
    const auto as_float = std::from_chars(digits.data(), end, number);
    if (as_float.ec != std::errc() || as_float.ptr != end) return fallback;
  }
  if (!(std::fabs(number) < 9.2e18)) return fallback;
  return Value::integer(static_cast<std::int64_t>(number));
}

Result<Value> filter_float(Environment&, const Value& input, const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"default"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  if (const auto number = input.as_number()) return Value::number(*number);
  const Value fallback = given(bound[0]) ? bound[0] : Value::number(0.0);
  const Text* text = input.as_text();
  if (text == nullptr) return fallback;
  const Text digits = strip(*text, std::nullopt);
  double number = 0;
  const char* end = digits.bytes.data() + digits.bytes.size();
  const auto done = std::from_chars(digits.bytes.data(), end, number);
  return done.ec == std::errc() && done.ptr == end ? Value::number(number) : fallback;
}

Result<Value> filter_abs(Environment&, const Value& input, const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  if (const auto integer = input.as_int()) {
    if (*integer == INT64_MIN) return fail(ErrorCode::kInvalidArgument, "abs: out of range");
    return Value::integer(std::abs(*integer));
  }
  if (const auto number = input.as_number()) return Value::number(std::fabs(*number));
  return fail(ErrorCode::kInvalidArgument, "abs needs a number, not {}", input.type_name());
}

Result<Value> filter_round(Environment&, const Value& input, const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"precision", "method"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  const auto number = input.as_number();
  const std::int64_t digits = bound[0].as_int().value_or(0);
  if (!number || digits < 0 || digits > 15) {
    return fail(ErrorCode::kInvalidArgument, "round needs a number and 0 to 15 digits");
  }
  const Text* method = bound[1].as_text();
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *number * scale;
  if (method != nullptr && method->bytes == "ceil") return Value::number(std::ceil(scaled) / scale);
  if (method != nullptr && method->bytes == "floor") {
    return Value::number(std::floor(scaled) / scale);
  }
  return Value::number(std::nearbyint(scaled) / scale);
}

Result<Value> filter_tojson(Environment& environment, const Value& input,
                            const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"indent", "ensure_ascii", "separators",
                                                "sort_keys"};
  // In Hugging Face's filter ensure_ascii comes first, but templates only name it.
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  JsonStyle style;
  if (const auto indent = bound[0].as_int()) {
    if (*indent < 0 || *indent > 64) {
      return fail(ErrorCode::kInvalidArgument, "tojson: the indent must be 0 to 64, not {}",
                  *indent);
    }
    style.indent = static_cast<int>(*indent);
    style.item_separator = ",";
  }
  style.ensure_ascii = bound[1].truth();
  if (const List* separators = bound[2].as_list(); separators && separators->items.size() == 2) {
    SPUD_TRY(const TextPtr item, to_text(environment.budget, separators->items[0]));
    SPUD_TRY(const TextPtr key, to_text(environment.budget, separators->items[1]));
    style.item_separator = item->bytes;
    style.key_separator = key->bytes;
  }
  style.sort_keys = bound[3].truth();
  return to_json(environment.budget, input, style);
}

constexpr auto kScalarFilters = make_registry<Filter>({
    {.name = "trim", .apply = &filter_trim},
    {.name = "upper", .apply = &filter_case<Case::kUpper>},
    {.name = "lower", .apply = &filter_case<Case::kLower>},
    {.name = "title", .apply = &filter_case<Case::kTitleFilter>},
    {.name = "capitalize", .apply = &filter_case<Case::kCapitalize>},
    {.name = "string", .apply = &filter_string},
    {.name = "safe", .apply = &filter_string},
    {.name = "replace", .apply = &filter_replace},
    {.name = "escape", .apply = &filter_escape},
    {.name = "e", .apply = &filter_escape},
    {.name = "indent", .apply = &filter_indent},
    {.name = "default", .apply = &filter_default},
    {.name = "d", .apply = &filter_default},
    {.name = "int", .apply = &filter_int},
    {.name = "float", .apply = &filter_float},
    {.name = "abs", .apply = &filter_abs},
    {.name = "round", .apply = &filter_round},
    {.name = "tojson", .apply = &filter_tojson},
});

}  // namespace

const Filter* find_filter(std::string_view name) noexcept {
  for (const std::span<const Filter> table :
       {std::span<const Filter>(kScalarFilters), list_filters()}) {
    const auto found = std::ranges::find(table, name, &Filter::name);
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

std::string known_filters(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (const Filter& filter : kScalarFilters) names.push_back(filter.name);
  for (const Filter& filter : list_filters()) names.push_back(filter.name);
  return suggestion_text(wrong, names);
}

}  // namespace spud::tokenizer::jinja
