// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja/value.hpp"

#include <algorithm>

#include "tokenizer/utf8.hpp"

namespace spud::tokenizer::jinja {
namespace {

struct Extent {
  int depth = 1;
  std::size_t weight = 1;
};

// Counts one more value inside a container. Depth and weight are bounded, so whatever walks through
// a value is too.
Result<void> add_inside(Extent& extent, const Value& value) {
  if (value.get<std::shared_ptr<Namespace>>() != nullptr) {
    return fail(ErrorCode::kUnimplemented, "a namespace inside another value is not supported");
  }
  extent.depth = std::max(extent.depth, value.depth() + 1);
  extent.weight += value.weight();
  if (extent.depth > kMaxValueDepth) {
    return fail(ErrorCode::kResourceExhausted, "values nest deeper than the limit of {}",
                kMaxValueDepth);
  }
  if (extent.weight > kMaxValueWeight) {
    return fail(ErrorCode::kResourceExhausted, "a value holds more than the limit of {} others",
                kMaxValueWeight);
  }
  return {};
}

bool equal_dicts(const Dict& a, const Dict& b) noexcept {
  return a.entries.size() == b.entries.size() &&
         std::ranges::all_of(a.entries, [&](const Dict::Entry& entry) {
           const Value* other = b.find(entry.key->bytes);
           return other != nullptr && equal(entry.value, *other);
         });
}

}  // namespace

const Value* Dict::find(std::string_view key) const noexcept {
  const auto found =
      std::ranges::find_if(entries, [&](const Entry& entry) { return entry.key->bytes == key; });
  return found == entries.end() ? nullptr : &found->value;
}

Value* Namespace::find(std::string_view name) noexcept {
  const auto found =
      std::ranges::find_if(members, [&](const auto& member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

Value Value::undefined(std::string what) {
  return Value(Variant(Undefined{std::make_shared<const std::string>(std::move(what))}));
}

const Text* Value::as_text() const noexcept {
  const TextPtr* text = get<TextPtr>();
  return text == nullptr ? nullptr : text->get();
}
const List* Value::as_list() const noexcept {
  const ListPtr* list = get<ListPtr>();
  return list == nullptr ? nullptr : list->get();
}
const Dict* Value::as_dict() const noexcept {
  const DictPtr* dict = get<DictPtr>();
  return dict == nullptr ? nullptr : dict->get();
}

std::optional<std::int64_t> Value::as_int() const noexcept {
  if (const auto* integer = get<std::int64_t>()) return *integer;
  if (const auto* boolean = get<bool>()) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::as_number() const noexcept {
  if (const auto* number = get<double>()) return *number;
  if (const auto integer = as_int()) return static_cast<double>(*integer);
  return std::nullopt;
}

bool Value::truth() const noexcept {
  if (is_undefined() || is_none()) return false;
  if (const Text* text = as_text()) return !text->bytes.empty();
  if (const List* list = as_list()) return !list->items.empty();
  if (const Dict* dict = as_dict()) return !dict->entries.empty();
  if (const auto number = as_number()) return *number != 0;
  return true;
}

std::string_view Value::type_name() const noexcept {
  static constexpr std::string_view kNames[] = {"undefined", "None", "bool",    "int",
                                                "float",     "str",  "list",    "dict",
                                                "namespace", "loop", "function"};
  const List* list = as_list();
  return list != nullptr && list->tuple ? "tuple" : kNames[data_.index()];
}

int Value::depth() const noexcept {
  if (const List* list = as_list()) return list->depth;
  if (const Dict* dict = as_dict()) return dict->depth;
  return 0;
}

std::size_t Value::weight() const noexcept {
  if (const Text* text = as_text()) return 1 + text->bytes.size() / 64;
  if (const List* list = as_list()) return list->weight;
  if (const Dict* dict = as_dict()) return dict->weight;
  return 1;
}

Result<Value> make_list(std::vector<Value> items, bool tuple) {
  Extent extent;
  for (const Value& item : items) SPUD_TRY(add_inside(extent, item));
  return Value(Value::Variant(std::make_shared<const List>(List{
      .items = std::move(items), .tuple = tuple, .depth = extent.depth, .weight = extent.weight})));
}

Result<Value> make_dict(std::vector<Dict::Entry> entries) {
  Extent extent;
  for (const Dict::Entry& entry : entries) SPUD_TRY(add_inside(extent, entry.value));
  return Value(Value::Variant(std::make_shared<const Dict>(
      Dict{.entries = std::move(entries), .depth = extent.depth, .weight = extent.weight})));
}

void put(std::vector<Dict::Entry>& entries, TextPtr key, Value value) {
  for (Dict::Entry& entry : entries) {
    if (entry.key->bytes == key->bytes) {
      entry.value = std::move(value);
      return;
    }
  }
  entries.push_back({std::move(key), std::move(value)});
}

bool equal(const Value& a, const Value& b) noexcept {
  const auto int_a = a.as_int();
  const auto int_b = b.as_int();
  if (int_a && int_b) return *int_a == *int_b;
  const auto number_a = a.as_number();
  const auto number_b = b.as_number();
  if (number_a && number_b) return *number_a == *number_b;
  if (a.is_undefined() && b.is_undefined()) return true;
  if (a.is_none() && b.is_none()) return true;
  if (a.as_text() != nullptr && b.as_text() != nullptr) {
    return a.as_text()->bytes == b.as_text()->bytes;
  }
  if (a.as_dict() != nullptr && b.as_dict() != nullptr) {
    return equal_dicts(*a.as_dict(), *b.as_dict());
  }
  if (a.as_list() != nullptr && b.as_list() != nullptr) {
    return a.as_list()->tuple == b.as_list()->tuple &&
           std::ranges::equal(a.as_list()->items, b.as_list()->items, equal);
  }
  return false;
}

Result<bool> less(const Value& a, const Value& b) {
  const auto int_a = a.as_int();
  const auto int_b = b.as_int();
  if (int_a && int_b) return *int_a < *int_b;
  const auto number_a = a.as_number();
  const auto number_b = b.as_number();
  if (number_a && number_b) return *number_a < *number_b;
  if (a.as_text() != nullptr && b.as_text() != nullptr) {
    return a.as_text()->bytes < b.as_text()->bytes;  // UTF-8 orders as code points do
  }
  if (a.as_list() != nullptr && b.as_list() != nullptr) {
    const auto& x = a.as_list()->items;
    const auto& y = b.as_list()->items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    }
    return x.size() < y.size();
  }
  return fail(ErrorCode::kInvalidArgument, "'<' is not defined between {} and {}", a.type_name(),
              b.type_name());
}

Result<bool> contains(const Value& haystack, const Value& needle) {
  if (const Text* text = haystack.as_text()) {
    const Text* part = needle.as_text();
    if (part == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "'in' a string needs a string, not {}",
                  needle.type_name());
    }
    return text->bytes.find(part->bytes) != std::string::npos;
  }
  if (const List* list = haystack.as_list()) {
    return std::ranges::any_of(list->items, [&](const Value& item) { return equal(item, needle); });
  }
  if (const Dict* dict = haystack.as_dict()) {
    const Text* key = needle.as_text();
    return key != nullptr && dict->find(key->bytes) != nullptr;
  }
  if (haystack.is_undefined()) return false;
  return fail(ErrorCode::kInvalidArgument, "'in' needs a string, list or dict, not {}",
              haystack.type_name());
}

Result<std::vector<Value>> iterate(const Value& value) {
  if (const List* list = value.as_list()) return list->items;
  std::vector<Value> items;
  if (const Dict* dict = value.as_dict()) {
    for (const Dict::Entry& entry : dict->entries) items.emplace_back(entry.key);
    return items;
  }
  if (const Text* text = value.as_text()) {
    for (std::size_t i = 0; i < text->bytes.size();) {
      const std::size_t end = i + utf8_step(std::string_view(text->bytes).substr(i)).length;
      items.push_back(Value::text(substring(*text, i, end)));
      i = end;
    }
    return items;
  }
  if (value.is_undefined()) return items;  // as Jinja: an undefined value is an empty sequence
  return fail(ErrorCode::kInvalidArgument, "{} cannot be looped over", value.type_name());
}

Result<std::int64_t> length(const Value& value) {
  if (const List* list = value.as_list()) return static_cast<std::int64_t>(list->items.size());
  if (const Dict* dict = value.as_dict()) return static_cast<std::int64_t>(dict->entries.size());
  if (value.is_undefined()) return 0;
  const Text* text = value.as_text();
  if (text == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "{} has no length", value.type_name());
  }
  std::int64_t count = 0;
  for (std::string_view rest = text->bytes; !rest.empty(); ++count) {
    rest.remove_prefix(utf8_step(rest).length);
  }
  return count;
}

}  // namespace spud::tokenizer::jinja
