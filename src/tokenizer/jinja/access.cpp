// SPDX-License-Identifier: Apache-2.0
// Attributes, indices, slices; binding of arguments.
#include <algorithm>
#include <charconv>

#include "tokenizer/jinja/builtins.hpp"
#include "tokenizer/jinja/strings.hpp"

namespace spud::tokenizer::jinja {
namespace {

Value member_undefined(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("'{}' of {}", name, object.type_name()));
}

Value loop_attribute(const Loop& loop, std::string_view name) {
  const std::size_t count = loop.items->items.size();
  const auto number = [](std::size_t n) { return Value::integer(static_cast<std::int64_t>(n)); };
  if (name == "index") return number(loop.index0 + 1);
  if (name == "index0") return number(loop.index0);
  if (name == "revindex") return number(count - loop.index0);
  if (name == "revindex0") return number(count - loop.index0 - 1);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(loop.index0 + 1 == count);
  if (name == "length") return number(count);
  if (name == "depth") return Value::integer(loop.level);
  if (name == "depth0") return Value::integer(loop.level - 1);
  if (name == "previtem" && loop.index0 > 0) return loop.items->items[loop.index0 - 1];
  if (name == "nextitem" && loop.index0 + 1 < count) return loop.items->items[loop.index0 + 1];
  return Value::undefined(fmt::format("'loop.{}'", name));
}

// A slice's bounds by Python's rules, for a sequence of `count` items.
struct SliceRange {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
};

Result<SliceRange> slice_range(std::int64_t count, const Value& start, const Value& stop,
                               const Value& step) {
  const auto part = [](const Value& value, std::int64_t fallback) -> Result<std::int64_t> {
    if (value.is_none() || value.is_undefined()) return fallback;
    if (const auto integer = value.as_int()) return *integer;
    return fail(ErrorCode::kInvalidArgument, "a slice needs integers, not {}", value.type_name());
  };
  SPUD_TRY(const std::int64_t by, part(step, 1));
  if (by == 0) return fail(ErrorCode::kInvalidArgument, "a slice's step must not be 0");
  const std::int64_t low = by > 0 ? 0 : -1;
  const std::int64_t high = by > 0 ? count : count - 1;
  const auto clamp = [&](std::int64_t i) {
    if (i < 0) i = i < -count ? -1 - count : i + count;
    return i < 0 ? low : std::min(i, high);
  };
  SliceRange range{by > 0 ? low : high, by > 0 ? high : low, by};
  if (!start.is_none() && !start.is_undefined()) {
    SPUD_TRY(const std::int64_t from, part(start, 0));
    range.start = clamp(from);
  }
  if (!stop.is_none() && !stop.is_undefined()) {
    SPUD_TRY(const std::int64_t to, part(stop, 0));
    range.stop = clamp(to);
  }
  return range;
}

// Calls visit(i) for every index of the slice; a step beyond the sequence ends it without wrapping.
template <typename Visit>
void for_each_index(const SliceRange& range, std::int64_t count, const Visit& visit) {
  const std::int64_t step = std::clamp(range.step, -count - 1, count + 1);
  for (std::int64_t i = range.start; step > 0 ? i < range.stop : i > range.stop; i += step) {
    visit(static_cast<std::size_t>(i));
  }
}

}  // namespace

Result<std::vector<Value>> bind_arguments(const Arguments& arguments,
                                          std::span<const std::string_view> names) {
  if (arguments.positional.size() > names.size()) {
    return fail(ErrorCode::kInvalidArgument, "{} arguments where at most {} are allowed",
                arguments.positional.size(), names.size());
  }
  std::vector<Value> bound = arguments.positional;
  bound.resize(names.size());
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return fail(ErrorCode::kInvalidArgument, "there is no argument named '{}'", name);
    }
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (index < arguments.positional.size()) {
      return fail(ErrorCode::kInvalidArgument, "the argument '{}' is given twice", name);
    }
    bound[index] = value;
  }
  return bound;
}

Result<Value> attribute(const Value& object, std::string_view name) {
  if (const Dict* dict = object.as_dict()) {
    const Value* found = dict->find(name);
    return found != nullptr ? *found : member_undefined(object, name);
  }
  if (const auto* space = object.get<std::shared_ptr<Namespace>>()) {
    const Value* found = (*space)->find(name);
    return found != nullptr ? *found : member_undefined(object, name);
  }
  if (const auto* loop = object.get<std::shared_ptr<const Loop>>()) {
    return loop_attribute(**loop, name);
  }
  if (const auto* undefined = object.get<Undefined>()) {
    return fail(ErrorCode::kInvalidArgument, "{} is undefined, it has no '{}'",
                undefined->what ? *undefined->what : "the value", name);
  }
  // "x.0" is an index.
  std::int64_t index = 0;
  const auto done = std::from_chars(name.data(), name.data() + name.size(), index);
  if (done.ec == std::errc() && done.ptr == name.data() + name.size()) {
    return subscript(object, Value::integer(index));
  }
  return member_undefined(object, name);
}

Result<Value> subscript(const Value& object, const Value& index) {
  if (const Text* key = index.as_text()) return attribute(object, key->bytes);
  const auto number = index.as_int();
  const List* list = object.as_list();
  const Text* text = object.as_text();
  if (number && (list != nullptr || text != nullptr)) {
    SPUD_TRY(const std::int64_t count, length(object));
    const std::int64_t at = *number < 0 && *number >= -count ? *number + count : *number;
    if (at < 0 || at >= count) return Value::undefined(fmt::format("index {}", *number));
    if (list != nullptr) return list->items[static_cast<std::size_t>(at)];
    const std::size_t begin = byte_of_character(text->bytes, at);
    const std::size_t end =
        begin + byte_of_character(std::string_view(text->bytes).substr(begin), 1);
    return Value::text(substring(*text, begin, end));
  }
  if (const auto* undefined = object.get<Undefined>()) {
    return fail(ErrorCode::kInvalidArgument, "{} is undefined, it cannot be indexed",
                undefined->what ? *undefined->what : "the value");
  }
  return Value::undefined(fmt::format("an element of {}", object.type_name()));
}

Result<Value> slice(Budget& budget, const Value& object, const Value& start, const Value& stop,
                    const Value& step) {
  const List* list = object.as_list();
  const Text* text = object.as_text();
  if (list == nullptr && text == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "{} cannot be sliced", object.type_name());
  }
  SPUD_TRY(const std::int64_t count, length(object));
  SPUD_TRY(const SliceRange range, slice_range(count, start, stop, step));
  SPUD_TRY(budget.step(static_cast<std::size_t>(count) / 16 + 1));
  if (list != nullptr) {
    std::vector<Value> items;
    for_each_index(range, count, [&](std::size_t i) { items.push_back(list->items[i]); });
    return make_list(std::move(items), list->tuple);
  }
  if (range.step == 1) {
    const std::size_t begin = byte_of_character(text->bytes, range.start);
    const std::size_t end = std::max(begin, byte_of_character(text->bytes, range.stop));
    return Value::text(substring(*text, begin, end));
  }
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text->bytes.size();) {
    starts.push_back(at);
    at += byte_of_character(std::string_view(text->bytes).substr(at), 1);
  }
  starts.push_back(text->bytes.size());
  TextBuilder out;
  for_each_index(range, count, [&](std::size_t i) { out.append(*text, starts[i], starts[i + 1]); });
  return Value::text(out.take());
}

Result<Value> attribute_path(const Value& object, const Value& path) {
  const Text* text = path.as_text();
  if (text == nullptr) return subscript(object, path);
  Value value = object;
  for (const Text& name : split(*text, ".")) {
    SPUD_TRY(value, attribute(value, name.bytes));
  }
  return value;
}

}  // namespace spud::tokenizer::jinja
