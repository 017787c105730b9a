// SPDX-License-Identifier: Apache-2.0
#include "config/scalars.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/checked_math.hpp"
#include "base/suggest.hpp"

namespace spud::config {
namespace {

struct Suffix {
  std::string_view text;
  std::int64_t factor;
};
constexpr Suffix kSuffixes[] = {{"Ki", 1LL << 10}, {"Mi", 1LL << 20}, {"Gi", 1LL << 30},
                                {"k", 1'000},      {"M", 1'000'000},  {"G", 1'000'000'000}};

std::string range_text(const FieldInfo& info) {
  const bool has_min = info.min != std::numeric_limits<double>::lowest();
  const bool has_max = info.max != std::numeric_limits<double>::max();
  if (has_min && has_max) return fmt::format("between {} and {}", info.min, info.max);
  return has_min ? fmt::format("at least {}", info.min) : fmt::format("at most {}", info.max);
}

Result<void> check_range(const FieldInfo& info, double value, std::string_view text) {
  if (value >= info.min && value <= info.max) return {};
  return fail(ErrorCode::kInvalidArgument, "{} is {}, but must be {}", info.name, text,
              range_text(info));
}

}  // namespace

Result<bool> parse_bool(const FieldInfo& info, std::string_view text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  return fail(ErrorCode::kInvalidArgument, "{} is '{}', but must be true or false", info.name,
              text);
}

Result<std::int64_t> parse_integer(const FieldInfo& info, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  std::int64_t factor = 1;
  for (const Suffix& suffix : kSuffixes) {
    if (rest == suffix.text) {
      factor = suffix.factor;
      rest = {};
      break;
    }
  }
  const auto product = checked_mul<std::int64_t>(value, factor);
  if (status != std::errc{} || !rest.empty() || !product) {
    return fail(ErrorCode::kInvalidArgument,
                "{} is '{}', but must be a whole number (a suffix like k, M, Ki or Mi is allowed)",
                info.name, text);
  }
  SPUD_TRY(check_range(info, static_cast<double>(*product), text));
  return *product;
}

Result<double> parse_number(const FieldInfo& info, std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return fail(ErrorCode::kInvalidArgument, "{} is '{}', but must be a number", info.name, text);
  }
  SPUD_TRY(check_range(info, value, text));
  return value;
}

Result<std::string> parse_text(const FieldInfo& info, std::string_view text) {
  // Empty means "not set" where a choice may be left out: what we print must read back.
  const bool left_out = text.empty() && !info.required;
  if (info.choices.empty() || left_out ||
      std::ranges::find(info.choices, text) != info.choices.end()) {
    return std::string(text);
  }
  return fail(ErrorCode::kInvalidArgument, "unknown {} '{}'{}", info.name, text,
              suggestion_text(text, info.choices));
}

}  // namespace spud::config
