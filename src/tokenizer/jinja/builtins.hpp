// SPDX-License-Identifier: Apache-2.0
// The filters, tests, functions and methods a template can use, each a row in a table. Names are
// looked up when a template is parsed, so that an unknown one is reported with its line.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/jinja/budget.hpp"
#include "tokenizer/jinja/value.hpp"

namespace spud::tokenizer::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// The arguments in the order of `names`, undefined where not given. kInvalidArgument for one too
// many or an unknown name.
[[nodiscard]] Result<std::vector<Value>> bind_arguments(const Arguments& arguments,
                                                        std::span<const std::string_view> names);
// Is the argument there? (An undefined value passed on purpose counts as absent.)
inline bool given(const Value& argument) { return !argument.is_undefined(); }

// What a test on these may walk through: strings in strings cost their product.
std::size_t test_weight(const Value& input, const Arguments& arguments) noexcept;

struct Environment {
  Budget& budget;
  std::int64_t now_unix_seconds = 0;
};

struct Filter {
  std::string_view name;
  Result<Value> (*apply)(Environment&, const Value& input, const Arguments&) = nullptr;
};
struct Test {
  std::string_view name;
  Result<bool> (*apply)(const Value& input, const Arguments&) = nullptr;
};
// Functions that exist without being set: range, raise_exception, ...
struct GlobalFunction {
  std::string_view name;
  Result<Value> (*call)(Environment&, const Arguments&) = nullptr;
};

// Null when unknown.
const Filter* find_filter(std::string_view name) noexcept;
const Test* find_test(std::string_view name) noexcept;
const GlobalFunction* find_global(std::string_view name) noexcept;
std::string known_filters(std::string_view wrong);
std::string known_tests(std::string_view wrong);

// object.name(...) for strings, lists, dictionaries; nothing when it has no such method.
[[nodiscard]] Result<std::optional<Value>> call_method(Environment& environment,
                                                       const Value& object, std::string_view name,
                                                       const Arguments& arguments);

// object.name and object[index] as Jinja looks them up; undefined when there is none.
[[nodiscard]] Result<Value> attribute(const Value& object, std::string_view name);
[[nodiscard]] Result<Value> subscript(const Value& object, const Value& index);
[[nodiscard]] Result<Value> slice(Budget& budget, const Value& object, const Value& start,
                                  const Value& stop, const Value& step);
// "a.b.0": what map(attribute=...) and the like take.
[[nodiscard]] Result<Value> attribute_path(const Value& object, const Value& path);

}  // namespace spud::tokenizer::jinja
