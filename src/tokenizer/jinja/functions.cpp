// SPDX-License-Identifier: Apache-2.0
// Functions that every template can call.
#include <algorithm>
#include <ctime>

#include "base/registry.hpp"
#include "tokenizer/jinja/builtins.hpp"
#include "tokenizer/jinja/print.hpp"

namespace spud::tokenizer::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // Jinja's sandbox has the same

Result<Value> call_range(Environment& environment, const Arguments& arguments) {
  std::int64_t parts[3] = {0, 0, 1};
  const std::size_t count = arguments.positional.size();
  if (count < 1 || count > 3 || !arguments.named.empty()) {
    return fail(ErrorCode::kInvalidArgument, "range() takes one to three integers");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto integer = arguments.positional[i].as_int();
    if (!integer || *integer > INT32_MAX || *integer < INT32_MIN) {
      return fail(ErrorCode::kInvalidArgument, "range() takes integers of 32 bits");
    }
    parts[count == 1 ? 1 : i] = *integer;
  }
  const auto [start, stop, step] = parts;
  if (step == 0) return fail(ErrorCode::kInvalidArgument, "range(): the step must not be 0");
  const std::int64_t span = step > 0 ? stop - start : start - stop;
  const std::int64_t size = step > 0 ? step : -step;
  const std::int64_t items = span <= 0 ? 0 : (span + size - 1) / size;
  if (items > kMaxRange) {
    return fail(ErrorCode::kResourceExhausted, "range() of {} items, more than the limit of {}",
                items, kMaxRange);
  }
  SPUD_TRY(environment.budget.step(static_cast<std::size_t>(items)));
  std::vector<Value> values;
  for (std::int64_t i = 0; i < items; ++i) values.push_back(Value::integer(start + i * step));
  return make_list(std::move(values));
}

Result<Value> call_namespace(Environment&, const Arguments& arguments) {
  auto made = std::make_shared<Namespace>();
  for (const Value& value : arguments.positional) {
    const Dict* dict = value.as_dict();
    if (dict == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "namespace() takes named values or a dict");
    }
    for (const Dict::Entry& entry : dict->entries) {
      made->members.emplace_back(entry.key->bytes, entry.value);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    if (value.get<std::shared_ptr<Namespace>>() != nullptr) {
      return fail(ErrorCode::kUnimplemented, "a namespace inside another is not supported");
    }
    if (Value* member = made->find(name)) {
      *member = value;
    } else {
      made->members.emplace_back(std::string(name), value);
    }
  }
  return Value(Value::Variant(std::move(made)));
}

Result<Value> call_dict(Environment&, const Arguments& arguments) {
  std::vector<Dict::Entry> entries;
  for (const Value& value : arguments.positional) {
    const Dict* dict = value.as_dict();
    if (dict == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "dict() takes named values or a dict");
    }
    entries = dict->entries;
  }
  for (const auto& [name, value] : arguments.named) {
    put(entries, std::make_shared<const Text>(Text{.bytes = std::string(name), .user = {}}), value);
  }
  return make_dict(std::move(entries));
}

Result<Value> call_raise_exception(Environment& environment, const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"message"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  SPUD_TRY(const TextPtr message, to_text(environment.budget, bound[0]));
  return fail(ErrorCode::kInvalidArgument, "the chat template refuses the messages: {}",
              message->bytes.substr(0, 1000));
}

// One directive at a time, so that no width or flag of the C library can be smuggled in.
Result<std::string> format_time(std::string_view format, const std::tm& time) {
  static constexpr std::string_view kPlain = "aAbBcdDeFHIjklmMnpPrRStTuUVwWxXyYzZ%";
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.push_back(format[i]);
      continue;
    }
    const bool unpadded = i + 1 < format.size() && format[i + 1] == '-';
    i += unpadded ? 2 : 1;
    if (i >= format.size() || kPlain.find(format[i]) == std::string_view::npos) {
      return fail(ErrorCode::kUnimplemented, "strftime_now(): the directive '%{}' is not supported",
                  i < format.size() ? format.substr(i, 1) : std::string_view());
    }
    const char directive[] = {'%', unpadded ? '-' : format[i], unpadded ? format[i] : '\0', '\0'};
    char buffer[128];
    const std::size_t size = std::strftime(buffer, sizeof(buffer), directive, &time);
    out.append(buffer, size);
  }
  return out;
}

Result<Value> call_strftime_now(Environment& environment, const Arguments& arguments) {
  static constexpr std::string_view kNames[] = {"format"};
  SPUD_TRY(const auto bound, bind_arguments(arguments, kNames));
  const Text* format = bound[0].as_text();
  if (format == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "strftime_now() takes a format string");
  }
  SPUD_TRY(environment.budget.bytes(format->bytes.size() * 32));
  const std::time_t now = static_cast<std::time_t>(environment.now_unix_seconds);
  std::tm time{};
  if (gmtime_r(&now, &time) == nullptr) {
    return fail(ErrorCode::kInternal, "the time {} has no calendar date", now);
  }
  SPUD_TRY(const std::string text, format_time(format->bytes, time));
  return Value::text(text);
}

constexpr auto kGlobals = make_registry<GlobalFunction>({
    {.name = "range", .call = &call_range},
    {.name = "namespace", .call = &call_namespace},
    {.name = "dict", .call = &call_dict},
    {.name = "raise_exception", .call = &call_raise_exception},
    {.name = "strftime_now", .call = &call_strftime_now},
});

}  // namespace

const GlobalFunction* find_global(std::string_view name) noexcept {
  const auto found = std::ranges::find(kGlobals, name, &GlobalFunction::name);
  return found == kGlobals.end() ? nullptr : &*found;
}

}  // namespace spud::tokenizer::jinja
