// SPDX-License-Identifier: Apache-2.0
#include "loadgen/trace.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace spud::loadgen {
namespace {

namespace json = boost::json;

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "2023-11-16 18:17:03.9799600" as seconds since 1970.
std::optional<double> parse_timestamp(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const auto year = parse_number<int>(text.substr(0, 4));
  const auto month = parse_number<unsigned>(text.substr(5, 2));
  const auto day = parse_number<unsigned>(text.substr(8, 2));
  const auto hour = parse_number<int>(text.substr(11, 2));
  const auto minute = parse_number<int>(text.substr(14, 2));
  const auto second = parse_number<double>(text.substr(17));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month),
                                         std::chrono::day(*day)};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch();
  return std::chrono::duration<double>(days).count() + *hour * 3600.0 + *minute * 60.0 + *second;
}

std::optional<TraceEntry> parse_csv_line(std::string_view line) {
  const auto first = line.find(',');
  if (first == std::string_view::npos) return std::nullopt;
  const auto second = line.find(',', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto at = parse_timestamp(line.substr(0, first));
  const auto prompt = parse_number<std::int64_t>(line.substr(first + 1, second - first - 1));
  const auto output = parse_number<std::int64_t>(line.substr(second + 1));
  if (!at || !prompt || !output) return std::nullopt;
  return TraceEntry{.at_s = *at, .prompt_tokens = *prompt, .output_tokens = *output};
}

std::optional<TraceEntry> parse_json_line(std::string_view line) {
  json::error_code failed;
  const json::value value = json::parse(line, failed);
  const json::object* object = failed ? nullptr : value.if_object();
  if (object == nullptr) return std::nullopt;
  const auto number = [object](std::string_view name) -> std::optional<std::int64_t> {
    const json::value* field = object->if_contains(name);
    if (field == nullptr || !field->is_int64()) return std::nullopt;
    return field->get_int64();
  };
  const auto at_ms = number("timestamp");
  const auto prompt = number("input_length");
  const auto output = number("output_length");
  if (!at_ms || !prompt || !output) return std::nullopt;
  return TraceEntry{.at_s = static_cast<double>(*at_ms) / 1000,
                    .prompt_tokens = *prompt,
                    .output_tokens = *output};
}

}  // namespace

Result<std::vector<TraceEntry>> parse_trace(std::string_view text) {
  constexpr std::string_view kCsvTitle = "TIMESTAMP,ContextTokens,GeneratedTokens";
  const bool is_csv = text.starts_with(kCsvTitle);
  std::vector<TraceEntry> entries;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (is_csv && number == 1)) continue;
    const auto entry = is_csv ? parse_csv_line(line) : parse_json_line(line);
    if (!entry || entry->prompt_tokens < 0 || entry->output_tokens < 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "line {} of the trace is neither a row of {} nor a JSON object with timestamp, "
                  "input_length and output_length",
                  number, kCsvTitle);
    }
    if (entries.size() == kMaxTraceEntries) {
      return fail(ErrorCode::kInvalidArgument, "the trace has more than {} requests; cut it",
                  kMaxTraceEntries);
    }
    entries.push_back(*entry);
  }
  if (entries.empty()) return fail(ErrorCode::kInvalidArgument, "the trace has no requests");
  std::ranges::stable_sort(entries, {}, &TraceEntry::at_s);
  const double begin = entries.front().at_s;
  for (TraceEntry& entry : entries) entry.at_s -= begin;
  return entries;
}

Result<std::vector<TraceEntry>> read_trace(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    return fail(ErrorCode::kNotFound, "the trace '{}' cannot be read", path.string());
  }
  return parse_trace(text.view());
}

}  // namespace spud::loadgen
