// SPDX-License-Identifier: Apache-2.0
// The tests behind "is".
#include <algorithm>

#include "base/registry.hpp"
#include "tokenizer/jinja/builtins.hpp"
#include "tokenizer/jinja/strings.hpp"

namespace spud::tokenizer::jinja {
namespace {

Result<void> expect_arguments(const Arguments& arguments, std::size_t count) {
  if (arguments.positional.size() == count && arguments.named.empty()) return {};
  return fail(ErrorCode::kInvalidArgument, "the test takes {} arguments, not {}", count,
              arguments.positional.size() + arguments.named.size());
}

// A test that only looks at the value.
template <bool (*Check)(const Value&)>
Result<bool> simple(const Value& input, const Arguments& arguments) {
  SPUD_TRY(expect_arguments(arguments, 0));
  return Check(input);
}

// A test with one argument.
template <Result<bool> (*Check)(const Value&, const Value&)>
Result<bool> binary(const Value& input, const Arguments& arguments) {
  SPUD_TRY(expect_arguments(arguments, 1));
  return Check(input, arguments.positional[0]);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_string(const Value& value) { return value.as_text() != nullptr; }
bool is_mapping(const Value& value) { return value.as_dict() != nullptr; }
bool is_iterable(const Value& value) {
  return is_string(value) || value.as_list() != nullptr || is_mapping(value) ||
         value.is_undefined();
}
bool is_number(const Value& value) { return value.is_number(); }
bool is_boolean(const Value& value) { return value.get<bool>() != nullptr; }
bool is_integer(const Value& value) { return value.get<std::int64_t>() != nullptr; }
bool is_float(const Value& value) { return value.get<double>() != nullptr; }
bool is_true(const Value& value) { return is_boolean(value) && value.truth(); }
bool is_false(const Value& value) { return is_boolean(value) && !value.truth(); }
bool is_callable(const Value& value) {
  return value.get<std::shared_ptr<const Function>>() != nullptr;
}
bool has_parity(const Value& value, bool odd) {
  const auto integer = value.as_int();
  return integer && (*integer % 2 != 0) == odd;
}
bool is_odd(const Value& value) { return has_parity(value, true); }
bool is_even(const Value& value) { return has_parity(value, false); }
bool has_case(const Value& value, Case mode, Case other) {
  const Text* text = value.as_text();
  return text != nullptr && change_case(*text, mode).bytes == text->bytes &&
         change_case(*text, other).bytes != text->bytes;
}
bool is_lower(const Value& value) { return has_case(value, Case::kLower, Case::kUpper); }
bool is_upper(const Value& value) { return has_case(value, Case::kUpper, Case::kLower); }

Result<bool> is_equal(const Value& a, const Value& b) { return equal(a, b); }
Result<bool> is_not_equal(const Value& a, const Value& b) { return !equal(a, b); }
Result<bool> is_greater(const Value& a, const Value& b) { return less(b, a); }
Result<bool> is_at_most(const Value& a, const Value& b) {
  SPUD_TRY(const bool greater, less(b, a));
  return !greater;
}
Result<bool> is_at_least(const Value& a, const Value& b) {
  SPUD_TRY(const bool smaller, less(a, b));
  return !smaller;
}
Result<bool> is_in(const Value& a, const Value& b) { return contains(b, a); }
Result<bool> is_divisible(const Value& a, const Value& b) {
  const auto x = a.as_int();
  const auto y = b.as_int();
  if (!x || !y || *y == 0) {
    return fail(ErrorCode::kInvalidArgument, "'divisibleby' needs an integer and one not 0");
  }
  return *y == -1 || *x % *y == 0;
}

constexpr auto kTests = make_registry<Test>({
    {.name = "defined", .apply = &simple<is_defined>},
    {.name = "undefined", .apply = &simple<is_undefined>},
    {.name = "none", .apply = &simple<is_none>},
    {.name = "string", .apply = &simple<is_string>},
    {.name = "mapping", .apply = &simple<is_mapping>},
    {.name = "iterable", .apply = &simple<is_iterable>},
    {.name = "sequence", .apply = &simple<is_iterable>},
    {.name = "number", .apply = &simple<is_number>},
    {.name = "boolean", .apply = &simple<is_boolean>},
    {.name = "integer", .apply = &simple<is_integer>},
    {.name = "float", .apply = &simple<is_float>},
    {.name = "true", .apply = &simple<is_true>},
    {.name = "false", .apply = &simple<is_false>},
    {.name = "callable", .apply = &simple<is_callable>},
    {.name = "odd", .apply = &simple<is_odd>},
    {.name = "even", .apply = &simple<is_even>},
    {.name = "lower", .apply = &simple<is_lower>},
    {.name = "upper", .apply = &simple<is_upper>},
    {.name = "equalto", .apply = &binary<is_equal>},
    {.name = "eq", .apply = &binary<is_equal>},
    {.name = "==", .apply = &binary<is_equal>},
    {.name = "ne", .apply = &binary<is_not_equal>},
    {.name = "!=", .apply = &binary<is_not_equal>},
    {.name = "lt", .apply = &binary<less>},
    {.name = "<", .apply = &binary<less>},
    {.name = "lessthan", .apply = &binary<less>},
    {.name = "le", .apply = &binary<is_at_most>},
    {.name = "<=", .apply = &binary<is_at_most>},
    {.name = "gt", .apply = &binary<is_greater>},
    {.name = ">", .apply = &binary<is_greater>},
    {.name = "greaterthan", .apply = &binary<is_greater>},
    {.name = "ge", .apply = &binary<is_at_least>},
    {.name = ">=", .apply = &binary<is_at_least>},
    {.name = "in", .apply = &binary<is_in>},
    {.name = "divisibleby", .apply = &binary<is_divisible>},
});

}  // namespace

std::size_t test_weight(const Value& input, const Arguments& arguments) noexcept {
  std::size_t weight = input.weight();
  for (const Value& argument : arguments.positional) {
    weight += argument.weight();
    if (input.as_text() != nullptr && argument.as_text() != nullptr) {
      weight += input.weight() * argument.weight();
    }
  }
  return weight;
}

const Test* find_test(std::string_view name) noexcept {
  const auto found = std::ranges::find(kTests, name, &Test::name);
  return found == kTests.end() ? nullptr : &*found;
}

std::string known_tests(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (const Test& test : kTests) names.push_back(test.name);
  return suggestion_text(wrong, names);
}

}  // namespace spud::tokenizer::jinja
