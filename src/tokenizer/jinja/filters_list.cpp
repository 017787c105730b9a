// SPDX-License-Identifier: Apache-2.0
// Filters on sequences and dictionaries.
#include <algorithm>
#include <cmath>

#include "base/checked_math.hpp"
#include "base/registry.hpp"
#include "tokenizer/jinja/filters.hpp"
#include "tokenizer/jinja/print.hpp"
#include "tokenizer/jinja/strings.hpp"

namespace spud::tokenizer::jinja {
namespace {

Result<std::vector<Value>> items_of(Environment& environment, const Value& input) {
  SPUD_TRY(std::vector<Value> items, iterate(input));
  SPUD_TRY(environment.budget.step(items.size() + 1));
  return items;
}

Result<Value> filter_length(Environment& environment, const Value& input,
                            const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  if (const Text* text = input.as_text()) SPUD_TRY(environment.budget.bytes(text->bytes.size()));
  SPUD_TRY(const std::int64_t count, length(input));
  return Value::integer(count);
}

Result<Value> filter_list(Environment& environment, const Value& input,
                          const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  SPUD_TRY(std::vector<Value> items, items_of(environment, input));
  return make_list(std::move(items));
}

Result<Value> filter_first(Environment& environment, const Value& input,
                           const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  return items.empty() ? Value::undefined("the first of an empty sequence") : items.front();
}

Result<Value> filter_last(Environment& environment, const Value& input,
                          const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  return items.empty() ? Value::undefined("the last of an empty sequence") : items.back();
}

Result<Value> filter_join(Environment& environment, const Value& input,
                          const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"d", "attribute"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  SPUD_TRY(const TextPtr separator, to_text(environment.budget, bound[0]));
  TextBuilder out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (given(bound[1])) {
      SPUD_TRY(item, attribute_path(item, bound[1]));
    }
    SPUD_TRY(const TextPtr text, to_text(environment.budget, item));
    SPUD_TRY(
        environment.budget.bytes(out.size() + text->bytes.size() > environment.budget.max_bytes()
                                     ? environment.budget.max_bytes() + 1
                                     : separator->bytes.size() + text->bytes.size()));
    if (i > 0) out.append(*separator);
    out.append(*text);
  }
  return Value::text(out.take());
}

Result<Value> filter_items(Environment& environment, const Value& input,
                           const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  std::vector<Value> pairs;
  if (const Dict* dict = input.as_dict()) {
    SPUD_TRY(environment.budget.step(dict->entries.size()));
    for (const Dict::Entry& entry : dict->entries) {
      SPUD_TRY(Value pair, make_list({Value(entry.key), entry.value}, /*tuple=*/true));
      pairs.push_back(std::move(pair));
    }
  } else if (!input.is_undefined()) {
    return fail(ErrorCode::kInvalidArgument, "items needs a dict, not {}", input.type_name());
  }
  return make_list(std::move(pairs));
}

// A key for sorting and comparing: strings in lower case unless case matters.
Result<Value> sort_key(Environment& environment, Value value, bool case_sensitive) {
  const Text* text = value.as_text();
  if (text == nullptr || case_sensitive) return value;
  SPUD_TRY(environment.budget.bytes(text->bytes.size()));
  return Value::text(change_case(*text, Case::kLower));
}

// Stable, and harmless when `before` is no order at all (NaN, or an error halfway), which the
// standard library's sorts are not.
template <typename Before>
void merge_sort(std::vector<std::size_t>& order, const Before& before) {
  std::vector<std::size_t> merged(order.size());
  for (std::size_t width = 1; width < order.size(); width *= 2) {
    for (std::size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, order.size());
      const std::size_t end = std::min(begin + 2 * width, order.size());
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t out = begin; out < end; ++out) {
        const bool take_right =
            left == middle || (right < end && before(order[right], order[left]));
        merged[out] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
}

Result<std::vector<Value>> sort_by(Environment& environment, const std::vector<Value>& items,
                                   const std::vector<Value>& keys, bool reverse) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // log2(n) comparisons for each item; an error inside the comparison is kept until after the sort.
  std::size_t weight = 0;
  for (const Value& key : keys) weight += key.weight();
  SPUD_TRY(environment.budget.step(items.size() * 20 + 1));
  SPUD_TRY(environment.budget.walk(weight * 20));
  std::optional<Error> error;
  const auto before = [&](std::size_t a, std::size_t b) {
    const auto result = reverse ? less(keys[b], keys[a]) : less(keys[a], keys[b]);
    if (!result && !error) error = result.error();
    return result && *result;
  };
  merge_sort(order, before);
  if (error) return std::unexpected(*std::move(error));
  std::vector<Value> sorted;
  for (const std::size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

Result<Value> filter_sort(Environment& environment, const Value& input,
                          const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"reverse", "case_sensitive", "attribute"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  std::vector<Value> keys;
  for (Value key : items) {
    if (given(bound[2])) {
      SPUD_TRY(key, attribute_path(key, bound[2]));
    }
    SPUD_TRY(key, sort_key(environment, std::move(key), bound[1].truth()));
    keys.push_back(std::move(key));
  }
  SPUD_TRY(std::vector<Value> sorted, sort_by(environment, items, keys, bound[0].truth()));
  return make_list(std::move(sorted));
}

Result<Value> filter_dictsort(Environment& environment, const Value& input,
                              const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"case_sensitive", "by", "reverse"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const Value pairs, filter_items(environment, input, {}));
  const Text* by = bound[1].as_text();
  const std::size_t part = by != nullptr && by->bytes == "value" ? 1 : 0;
  std::vector<Value> keys;
  for (const Value& pair : pairs.as_list()->items) {
    SPUD_TRY(Value key, sort_key(environment, pair.as_list()->items[part], bound[0].truth()));
    keys.push_back(std::move(key));
  }
  SPUD_TRY(std::vector<Value> sorted,
           sort_by(environment, pairs.as_list()->items, keys, bound[2].truth()));
  return make_list(std::move(sorted));
}

Result<Value> filter_unique(Environment& environment, const Value& input,
                            const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"case_sensitive", "attribute"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  std::vector<Value> seen;
  std::size_t seen_weight = 0;
  std::vector<Value> kept;
  for (const Value& item : items) {
    Value key = item;
    if (given(bound[1])) {
      SPUD_TRY(key, attribute_path(key, bound[1]));
    }
    SPUD_TRY(key, sort_key(environment, std::move(key), bound[0].truth()));
    SPUD_TRY(environment.budget.step(seen.size() + 1));
    SPUD_TRY(environment.budget.walk(seen_weight));
    seen_weight += key.weight();
    if (std::ranges::any_of(seen, [&](const Value& other) { return equal(other, key); })) continue;
    seen.push_back(std::move(key));
    kept.push_back(item);
  }
  return make_list(std::move(kept));
}

Result<Value> filter_reverse(Environment& environment, const Value& input,
                             const Arguments& arguments) {
  SPUD_TRY(bind_arguments(arguments, {}));
  SPUD_TRY(std::vector<Value> items, items_of(environment, input));
  std::ranges::reverse(items);
  if (input.as_text() == nullptr) return make_list(std::move(items));
  TextBuilder out;
  for (const Value& item : items) out.append(*item.as_text());
  return Value::text(out.take());
}

template <bool kGreatest>
Result<Value> filter_extreme(Environment& environment, const Value& input,
                             const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"case_sensitive", "attribute"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  if (items.empty()) return Value::undefined("the extreme of an empty sequence");
  std::size_t best = 0;
  Value best_key;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Value key = items[i];
    if (given(bound[1])) {
      SPUD_TRY(key, attribute_path(key, bound[1]));
    }
    SPUD_TRY(key, sort_key(environment, std::move(key), bound[0].truth()));
    SPUD_TRY(environment.budget.walk(key.weight()));
    bool better = i == 0;
    if (!better) {
      SPUD_TRY(better, kGreatest ? less(best_key, key) : less(key, best_key));
    }
    if (!better) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Result<Value> filter_sum(Environment& environment, const Value& input, const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"attribute", "start"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  Value total = given(bound[1]) ? bound[1] : Value::integer(0);
  for (Value item : items) {
    if (given(bound[0])) {
      SPUD_TRY(item, attribute_path(item, bound[0]));
    }
    const auto a = total.as_int();
    const auto b = item.as_int();
    if (!total.is_number() || !item.is_number()) {
      return fail(ErrorCode::kInvalidArgument, "sum needs numbers, not {}", item.type_name());
    }
    const auto exact = a && b ? checked_add(*a, *b) : std::nullopt;
    total = exact ? Value::integer(*exact) : Value::number(*total.as_number() + *item.as_number());
  }
  return total;
}

Result<Value> filter_map(Environment& environment, const Value& input, const Arguments& arguments) {
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  std::vector<Value> mapped;
  if (!arguments.positional.empty()) {
    const Text* name = arguments.positional[0].as_text();
    const Filter* filter = name == nullptr ? nullptr : find_filter(name->bytes);
    if (filter == nullptr) {
      return fail(ErrorCode::kUnimplemented, "map: the filter '{}' is not supported",
                  name == nullptr ? "?" : name->bytes);
    }
    Arguments rest;
    rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
    rest.named = arguments.named;
    // map(map(map(...))) would recurse through its own arguments.
    if (filter->apply == &filter_map) {
      return fail(ErrorCode::kUnimplemented, "map: 'map' inside map is not supported");
    }
    for (const Value& item : items) {
      SPUD_TRY(Value value, filter->apply(environment, item, rest));
      mapped.push_back(std::move(value));
    }
    return make_list(std::move(mapped));
  }
  static constexpr std::string_view kNames[] = {"attribute", "default"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  for (const Value& item : items) {
    SPUD_TRY(Value value, attribute_path(item, bound[0]));
    if (value.is_undefined() && given(bound[1])) value = bound[1];
    mapped.push_back(std::move(value));
  }
  return make_list(std::move(mapped));
}

// select, reject, selectattr, rejectattr.
template <bool kByAttribute, bool kKeep>
Result<Value> filter_select(Environment& environment, const Value& input,
                            const Arguments& arguments) {
  SPUD_TRY(const std::vector<Value> items, items_of(environment, input));
  std::size_t next = 0;
  const auto take = [&] {
    return next < arguments.positional.size() ? arguments.positional[next++] : Value();
  };
  const Value path = kByAttribute ? take() : Value();
  const Value test_name = take();
  const Test* test = nullptr;
  if (given(test_name)) {
    const Text* name = test_name.as_text();
    test = name == nullptr ? nullptr : find_test(name->bytes);
    if (test == nullptr) {
      return fail(ErrorCode::kUnimplemented, "the test '{}' is not supported{}",
                  name == nullptr ? "?" : name->bytes,
                  known_tests(name == nullptr ? "" : name->bytes));
    }
  }
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(next),
                         arguments.positional.end());
  std::vector<Value> kept;
  for (const Value& item : items) {
    Value value = item;
    if (kByAttribute) {
      SPUD_TRY(value, attribute_path(item, path));
    }
    bool passes = value.truth();
    SPUD_TRY(environment.budget.walk(test_weight(value, rest)));
    if (test != nullptr) {
      SPUD_TRY(passes, test->apply(value, rest));
    }
    if (passes == kKeep) kept.push_back(item);
  }
  return make_list(std::move(kept));
}

constexpr auto kListFilters = make_registry<Filter>({
    {.name = "length", .apply = &filter_length},
    {.name = "count", .apply = &filter_length},
    {.name = "list", .apply = &filter_list},
    {.name = "first", .apply = &filter_first},
    {.name = "last", .apply = &filter_last},
    {.name = "join", .apply = &filter_join},
    {.name = "items", .apply = &filter_items},
    {.name = "sort", .apply = &filter_sort},
    {.name = "dictsort", .apply = &filter_dictsort},
    {.name = "unique", .apply = &filter_unique},
    {.name = "reverse", .apply = &filter_reverse},
    {.name = "min", .apply = &filter_extreme<false>},
    {.name = "max", .apply = &filter_extreme<true>},
    {.name = "sum", .apply = &filter_sum},
    {.name = "map", .apply = &filter_map},
    {.name = "select", .apply = &filter_select<false, true>},
    {.name = "reject", .apply = &filter_select<false, false>},
    {.name = "selectattr", .apply = &filter_select<true, true>},
    {.name = "rejectattr", .apply = &filter_select<true, false>},
});

}  // namespace

std::span<const Filter> list_filters() { return kListFilters; }

}  // namespace spud::tokenizer::jinja
