// SPDX-License-Identifier: Apache-2.0
// Methods that change a list or dictionary: list.append(x), dict.update(y), ... They rebind the
// variable (or namespace member) the object stands in, so that values themselves never change.
#include <algorithm>

#include "tokenizer/jinja/interpreter.hpp"

namespace spud::tokenizer::jinja {
namespace {

std::unexpected<Error> wrong_arguments(std::string_view method) {
  return fail(ErrorCode::kInvalidArgument, "wrong arguments for '{}'", method);
}

// The index of an existing element, counted from the end when negative.
Result<std::size_t> element_index(const Value& value, std::size_t count) {
  const auto size = static_cast<std::int64_t>(count);
  const std::int64_t at = value.is_undefined() ? -1 : value.as_int().value_or(size);
  const std::int64_t index = at < 0 && at >= -size ? at + size : at;
  if (index >= 0 && index < size) return static_cast<std::size_t>(index);
  return fail(ErrorCode::kInvalidArgument, "pop(): no such element");
}

// The new items; `result` is what the call gives.
Result<std::vector<Value>> changed_items(Budget& budget, const List& list, std::string_view method,
                                         const std::vector<Value>& arguments, Value& result) {
  SPUD_TRY(budget.step(list.items.size() / 16 + 1));
  std::vector<Value> items = list.items;
  if (method == "append" && arguments.size() == 1) {
    items.push_back(arguments[0]);
  } else if (method == "extend" && arguments.size() == 1) {
    SPUD_TRY(const std::vector<Value> more, iterate(arguments[0]));
    SPUD_TRY(budget.step(more.size()));
    items.insert(items.end(), more.begin(), more.end());
  } else if (method == "insert" && arguments.size() == 2 && arguments[0].as_int()) {
    const auto size = static_cast<std::int64_t>(items.size());
    const std::int64_t at = *arguments[0].as_int();
    items.insert(items.begin() + std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size),
                 arguments[1]);
  } else if (method == "pop" && arguments.size() <= 1) {
    SPUD_TRY(const std::size_t index,
             element_index(arguments.empty() ? Value() : arguments[0], items.size()));
    result = items[index];
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(index));
  } else {
    return wrong_arguments(method);
  }
  return items;
}

Result<Value> updated_dict(Budget& budget, const Dict& dict, std::string_view method,
                           const std::vector<Value>& arguments) {
  if (method != "update") {
    return fail(ErrorCode::kUnimplemented, "'{}' of a dict is not supported", method);
  }
  const Dict* other = arguments.size() == 1 ? arguments[0].as_dict() : nullptr;
  if (other == nullptr) return wrong_arguments(method);
  SPUD_TRY(budget.step(dict.entries.size()));
  std::vector<Dict::Entry> entries = dict.entries;
  for (const Dict::Entry& entry : other->entries) {
    SPUD_TRY(budget.step(entries.size() / 16 + 1));
    put(entries, entry.key, entry.value);
  }
  return make_dict(std::move(entries));
}

Result<Value> change(Budget& budget, Value& target, std::string_view method,
                     const std::vector<Value>& arguments) {
  if (const Dict* dict = target.as_dict()) {
    SPUD_TRY(target, updated_dict(budget, *dict, method, arguments));
    return Value::none();
  }
  const List* list = target.as_list();
  if (list == nullptr || list->tuple) {
    return fail(ErrorCode::kInvalidArgument, "{} has no method '{}'", target.type_name(), method);
  }
  Value result = Value::none();
  SPUD_TRY(std::vector<Value> items, changed_items(budget, *list, method, arguments, result));
  SPUD_TRY(target, make_list(std::move(items)));
  return result;
}

}  // namespace

Value* Interpreter::find_place(const Expr& place) noexcept {
  if (place.kind == ExprKind::kName) return find_variable(place.name);
  if (place.kind != ExprKind::kAttribute || place.children[0]->kind != ExprKind::kName) {
    return nullptr;
  }
  Value* owner = find_variable(place.children[0]->name);
  const auto* space = owner == nullptr ? nullptr : owner->get<std::shared_ptr<Namespace>>();
  return space == nullptr ? nullptr : (*space)->find(place.name);
}

Result<std::optional<Value>> Interpreter::mutate(const Expr& callee, const Arguments& arguments) {
  static constexpr std::string_view kMethods[] = {"append", "extend", "insert", "pop", "update"};
  if (std::ranges::find(kMethods, callee.name) == std::end(kMethods)) return std::nullopt;
  const std::string line = fmt::format("chat template line {}", callee.line);
  Value* target = find_place(*callee.children[0]);
  if (target == nullptr) {
    return fail(ErrorCode::kUnimplemented,
                "{}: '{}' on something that is not a variable is not supported", line, callee.name);
  }
  auto result = change(budget_, *target, callee.name, arguments.positional);
  if (!result) return fail_within(line, std::move(result).error());
  return std::optional(*std::move(result));
}

}  // namespace spud::tokenizer::jinja
