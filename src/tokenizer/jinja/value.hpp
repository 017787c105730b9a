// SPDX-License-Identifier: Apache-2.0
// The values a template computes with, with Python's meaning of truth, equality and order.
// Lists and dictionaries are immutable and shared: no value can contain itself, and how deep they
// nest is known when they are made. Namespaces are the one mutable thing; no value may hold one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/jinja/text.hpp"

namespace spud::tokenizer::jinja {

struct Stmt;
class Value;

struct Undefined {
  std::shared_ptr<const std::string> what;  // for messages: "'tools'"; may be null
};
struct None {};
struct List {
  std::vector<Value> items;
  bool tuple = false;
  int depth = 1;
  std::size_t weight = 1;
};
struct Dict {
  struct Entry;
  std::vector<Entry> entries;  // in order of insertion; keys are strings
  int depth = 1;
  std::size_t weight = 1;
  const Value* find(std::string_view key) const noexcept;
};
struct Namespace;
struct Loop;
struct Function;  // a macro or a built-in function

using TextPtr = std::shared_ptr<const Text>;
using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;

class Value {
 public:
  using Variant = std::variant<Undefined, None, bool, std::int64_t, double, TextPtr, ListPtr,
                               DictPtr, std::shared_ptr<Namespace>, std::shared_ptr<const Loop>,
                               std::shared_ptr<const Function>>;
  Value() = default;
  Value(Variant data) : data_(std::move(data)) {}  // NOLINT: values are made from what they hold
  static Value none() { return Value(Variant(None{})); }
  static Value boolean(bool b) { return Value(Variant(b)); }
  static Value integer(std::int64_t i) { return Value(Variant(i)); }
  static Value number(double d) { return Value(Variant(d)); }
  static Value text(Text t) { return Value(Variant(std::make_shared<const Text>(std::move(t)))); }
  static Value text(std::string_view s) { return text(Text{.bytes = std::string(s), .user = {}}); }
  static Value undefined(std::string what);

  template <typename T>
  const T* get() const noexcept {
    return std::get_if<T>(&data_);
  }
  const Text* as_text() const noexcept;
  const List* as_list() const noexcept;
  const Dict* as_dict() const noexcept;
  bool is_undefined() const noexcept { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const noexcept { return std::holds_alternative<None>(data_); }
  // Integers and booleans.
  std::optional<std::int64_t> as_int() const noexcept;
  // Any number.
  std::optional<double> as_number() const noexcept;
  bool is_number() const noexcept { return as_number().has_value(); }

  bool truth() const noexcept;
  // "str", "int", "list", ...: Python's name of the type.
  std::string_view type_name() const noexcept;
  int depth() const noexcept;
  // How much there is to walk through: values inside, and strings by their length. A list may hold
  // one list many times, so this can be far more than the memory it takes.
  std::size_t weight() const noexcept;

 private:
  Variant data_;
};

struct Dict::Entry {
  TextPtr key;
  Value value;
};
struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
  Value* find(std::string_view name) noexcept;
};
// What `loop` is inside a for.
struct Loop {
  ListPtr items;
  std::size_t index0 = 0;
  int level = 1;
};

inline constexpr int kMaxValueDepth = 100;
inline constexpr std::size_t kMaxValueWeight = std::size_t{1} << 22;

// Made only through these: too deep, too heavy, or a namespace inside, is an error.
[[nodiscard]] Result<Value> make_list(std::vector<Value> items, bool tuple = false);
[[nodiscard]] Result<Value> make_dict(std::vector<Dict::Entry> entries);
// Sets or replaces a key.
void put(std::vector<Dict::Entry>& entries, TextPtr key, Value value);

bool equal(const Value& a, const Value& b) noexcept;
// Python's <: numbers with numbers, strings with strings, lists item by item; else an error.
[[nodiscard]] Result<bool> less(const Value& a, const Value& b);
// `needle in haystack`.
[[nodiscard]] Result<bool> contains(const Value& haystack, const Value& needle);
// What a for loop goes over: items, keys or characters.
[[nodiscard]] Result<std::vector<Value>> iterate(const Value& value);
[[nodiscard]] Result<std::int64_t> length(const Value& value);

}  // namespace spud::tokenizer::jinja
