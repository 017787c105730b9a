// SPDX-License-Identifier: Apache-2.0
// Methods of strings, lists and dictionaries that templates call, as Python has them. The ones that
// change a list are the interpreter's, since values are immutable.
#include <algorithm>

#include "base/registry.hpp"
#include "tokenizer/jinja/builtins.hpp"
#include "tokenizer/jinja/print.hpp"
#include "tokenizer/jinja/strings.hpp"

namespace spud::tokenizer::jinja {
namespace {

using Bound = std::vector<Value>;

Result<const Text*> text_argument(const Value& value) {
  if (const Text* text = value.as_text()) return text;
  return fail(ErrorCode::kInvalidArgument, "a string is needed, not {}", value.type_name());
}

struct StringMethod {
  std::string_view name;
  std::array<std::string_view, 3> parameters{};
  Result<Value> (*call)(Environment&, const Text&, const Bound&) = nullptr;
};

template <bool kLeft, bool kRight>
Result<Value> string_strip(Environment&, const Text& text, const Bound& bound) {
  const Text* characters = bound[0].as_text();
  return Value::text(strip(
      text,
      characters == nullptr ? std::nullopt : std::optional<std::string_view>(characters->bytes),
      {.left = kLeft, .right = kRight}));
}

template <Case kMode>
Result<Value> string_case(Environment&, const Text& text, const Bound&) {
  return Value::text(change_case(text, kMode));
}

// startswith and endswith take one string or a tuple of them.
template <bool kStart>
Result<Value> string_affix(Environment&, const Text& text, const Bound& bound) {
  const auto matches = [&](const Value& value) -> Result<bool> {
    SPUD_TRY(const Text* affix, text_argument(value));
    return kStart ? text.bytes.starts_with(affix->bytes) : text.bytes.ends_with(affix->bytes);
  };
  bool found = false;
  if (const List* list = bound[0].as_list()) {
    for (const Value& item : list->items) {
      SPUD_TRY(const bool one, matches(item));
      found = found || one;
    }
  } else {
    SPUD_TRY(found, matches(bound[0]));
  }
  return Value::boolean(found);
}

template <bool kStart>
Result<Value> string_remove_affix(Environment&, const Text& text, const Bound& bound) {
  SPUD_TRY(const Text* affix, text_argument(bound[0]));
  const std::size_t size = text.bytes.size();
  if (kStart && text.bytes.starts_with(affix->bytes)) {
    return Value::text(substring(text, affix->bytes.size(), size));
  }
  if (!kStart && text.bytes.ends_with(affix->bytes)) {
    return Value::text(substring(text, 0, size - affix->bytes.size()));
  }
  return Value::text(text);
}

Result<Value> list_of(Environment& environment, std::vector<Text> parts) {
  SPUD_TRY(environment.budget.step(parts.size()));
  std::vector<Value> values;
  for (Text& part : parts) values.push_back(Value::text(std::move(part)));
  return make_list(std::move(values));
}

template <bool kFromRight>
Result<Value> string_split(Environment& environment, const Text& text, const Bound& bound) {
  const std::int64_t limit = bound[1].as_int().value_or(-1);
  if (!given(bound[0]) || bound[0].is_none()) {
    if (kFromRight && limit >= 0) {
      return fail(ErrorCode::kUnimplemented, "rsplit() without a separator but with a limit");
    }
    return list_of(environment, split(text, std::nullopt, limit));
  }
  SPUD_TRY(const Text* separator, text_argument(bound[0]));
  if (separator->bytes.empty()) {
    return fail(ErrorCode::kInvalidArgument, "split(): the separator must not be empty");
  }
  return list_of(environment, kFromRight ? split_from_right(text, separator->bytes, limit)
                                         : split(text, separator->bytes, limit));
}

Result<Value> string_split_lines(Environment& environment, const Text& text, const Bound&) {
  return list_of(environment, split_lines(text));
}

Result<Value> string_replace(Environment& environment, const Text& text, const Bound& bound) {
  SPUD_TRY(const Text* from, text_argument(bound[0]));
  SPUD_TRY(const Text* to, text_argument(bound[1]));
  SPUD_TRY(Text replaced,
           replace(environment.budget, text, from->bytes, *to, bound[2].as_int().value_or(-1)));
  return Value::text(std::move(replaced));
}

template <bool kFromRight>
Result<Value> string_find(Environment&, const Text& text, const Bound& bound) {
  SPUD_TRY(const Text* part, text_argument(bound[0]));
  const std::size_t at = kFromRight ? text.bytes.rfind(part->bytes) : text.bytes.find(part->bytes);
  if (at == std::string::npos) return Value::integer(-1);
  return Value::integer(count_characters(std::string_view(text.bytes).substr(0, at)));
}

Result<Value> string_count(Environment&, const Text& text, const Bound& bound) {
  SPUD_TRY(const Text* part, text_argument(bound[0]));
  if (part->bytes.empty()) return Value::integer(count_characters(text.bytes) + 1);
  std::int64_t count = 0;
  for (std::size_t at = text.bytes.find(part->bytes); at != std::string::npos;
       at = text.bytes.find(part->bytes, at + part->bytes.size())) {
    ++count;
  }
  return Value::integer(count);
}

Result<Value> string_join(Environment& environment, const Text& text, const Bound& bound) {
  SPUD_TRY(const std::vector<Value> items, iterate(bound[0]));
  TextBuilder out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    SPUD_TRY(const Text* item, text_argument(items[i]));
    if (i > 0) out.append(text);
    out.append(*item);
    SPUD_TRY(environment.budget.step());
    if (out.size() > environment.budget.max_bytes()) break;
  }
  SPUD_TRY(environment.budget.bytes(out.size()));
  return Value::text(out.take());
}

// isdigit, isalpha, ...: not empty, and every byte in the class. Other scripts are not told apart.
template <bool (*kClass)(char)>
Result<Value> string_class(Environment&, const Text& text, const Bound&) {
  return Value::boolean(!text.bytes.empty() && std::ranges::all_of(text.bytes, kClass));
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<std::uint8_t>(c) >= 0x80;
}
bool is_alnum(char c) { return is_digit(c) || is_alpha(c); }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr auto kStringMethods = make_registry<StringMethod>({
    {.name = "strip", .parameters = {"chars"}, .call = &string_strip<true, true>},
    {.name = "lstrip", .parameters = {"chars"}, .call = &string_strip<true, false>},
    {.name = "rstrip", .parameters = {"chars"}, .call = &string_strip<false, true>},
    {.name = "upper", .call = &string_case<Case::kUpper>},
    {.name = "lower", .call = &string_case<Case::kLower>},
    {.name = "title", .call = &string_case<Case::kTitle>},
    {.name = "capitalize", .call = &string_case<Case::kCapitalize>},
    {.name = "startswith", .parameters = {"prefix"}, .call = &string_affix<true>},
    {.name = "endswith", .parameters = {"suffix"}, .call = &string_affix<false>},
    {.name = "removeprefix", .parameters = {"prefix"}, .call = &string_remove_affix<true>},
    {.name = "removesuffix", .parameters = {"suffix"}, .call = &string_remove_affix<false>},
    {.name = "split", .parameters = {"sep", "maxsplit"}, .call = &string_split<false>},
    {.name = "rsplit", .parameters = {"sep", "maxsplit"}, .call = &string_split<true>},
    {.name = "splitlines", .call = &string_split_lines},
    {.name = "replace", .parameters = {"old", "new", "count"}, .call = &string_replace},
    {.name = "find", .parameters = {"sub"}, .call = &string_find<false>},
    {.name = "rfind", .parameters = {"sub"}, .call = &string_find<true>},
    {.name = "count", .parameters = {"sub"}, .call = &string_count},
    {.name = "join", .parameters = {"iterable"}, .call = &string_join},
    {.name = "isdigit", .call = &string_class<is_digit>},
    {.name = "isnumeric", .call = &string_class<is_digit>},
    {.name = "isalpha", .call = &string_class<is_alpha>},
    {.name = "isalnum", .call = &string_class<is_alnum>},
    {.name = "isspace", .call = &string_class<is_space>},
});

Result<std::optional<Value>> call_string_method(Environment& environment, const Text& text,
                                                std::string_view name, const Arguments& arguments) {
  const auto method = std::ranges::find(kStringMethods, name, &StringMethod::name);
  if (method == kStringMethods.end()) return std::nullopt;
  const auto last = std::ranges::find(method->parameters, std::string_view());
  SPUD_TRY(Bound bound, bind_arguments(arguments, std::span(method->parameters.begin(), last)));
  bound.resize(method->parameters.size());
  SPUD_TRY(environment.budget.bytes(text.bytes.size()));
  // All of them look for their first argument in the text, or for its characters.
  const Text* part = bound[0].as_text();
  SPUD_TRY(environment.budget.search(text.bytes.size(), part == nullptr ? 0 : part->bytes.size()));
  SPUD_TRY(Value value, method->call(environment, text, bound));
  return std::optional(std::move(value));
}

Result<std::optional<Value>> call_dict_method(Environment& environment, const Value& object,
                                              std::string_view name, const Arguments& arguments) {
  const Dict& dict = *object.as_dict();
  if (name == "get") {
    static constexpr std::string_view kNames[] = {"key", "default"};
    SPUD_TRY(const Bound bound, bind_arguments(arguments, kNames));
    const Text* key = bound[0].as_text();
    const Value* found = key == nullptr ? nullptr : dict.find(key->bytes);
    if (found != nullptr) return std::optional(*found);
    return std::optional(given(bound[1]) ? bound[1] : Value::none());
  }
  const bool keys = name == "keys";
  const bool values = name == "values";
  if (!keys && !values && name != "items" && name != "copy") return std::nullopt;
  SPUD_TRY(bind_arguments(arguments, {}));
  if (name == "copy") return std::optional(object);
  SPUD_TRY(environment.budget.step(dict.entries.size()));
  std::vector<Value> items;
  for (const Dict::Entry& entry : dict.entries) {
    if (keys) {
      items.emplace_back(entry.key);
    } else if (values) {
      items.push_back(entry.value);
    } else {
      SPUD_TRY(Value pair, make_list({Value(entry.key), entry.value}, /*tuple=*/true));
      items.push_back(std::move(pair));
    }
  }
  SPUD_TRY(Value list, make_list(std::move(items)));
  return std::optional(std::move(list));
}

Result<std::optional<Value>> call_list_method(Environment& environment, const List& list,
                                              std::string_view name, const Arguments& arguments) {
  if (name != "index" && name != "count") return std::nullopt;
  static constexpr std::string_view kNames[] = {"value"};
  SPUD_TRY(const Bound bound, bind_arguments(arguments, kNames));
  SPUD_TRY(environment.budget.step(list.items.size()));
  SPUD_TRY(environment.budget.walk(list.weight));
  const auto same = [&](const Value& item) { return equal(item, bound[0]); };
  if (name == "count") {
    return std::optional(Value::integer(std::ranges::count_if(list.items, same)));
  }
  const auto found = std::ranges::find_if(list.items, same);
  if (found == list.items.end()) {
    return fail(ErrorCode::kInvalidArgument, "index(): the value is not in the list");
  }
  return std::optional(Value::integer(found - list.items.begin()));
}

}  // namespace

Result<std::optional<Value>> call_method(Environment& environment, const Value& object,
                                         std::string_view name, const Arguments& arguments) {
  if (const Text* text = object.as_text()) {
    return call_string_method(environment, *text, name, arguments);
  }
  if (object.as_dict() != nullptr) return call_dict_method(environment, object, name, arguments);
  if (const List* list = object.as_list()) {
    return call_list_method(environment, *list, name, arguments);
  }
  if (const auto* loop = object.get<std::shared_ptr<const Loop>>(); loop && name == "cycle") {
    if (arguments.positional.empty()) {
      return fail(ErrorCode::kInvalidArgument, "loop.cycle() needs values");
    }
    return std::optional(arguments.positional[(*loop)->index0 % arguments.positional.size()]);
  }
  return std::nullopt;
}

}  // namespace spud::tokenizer::jinja
