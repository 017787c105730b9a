// SPDX-License-Identifier: Apache-2.0
#include "loadgen/slo.hpp"

#include <charconv>
#include <cmath>

namespace spud::loadgen {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr Unit kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
constexpr double kLongestSeconds = 1e8;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Result<void> set_limit(std::string_view name, Nanoseconds limit, Slo& slo) {
  if (name == "ttft") {
    slo.ttft = limit;
  } else if (name == "tpot") {
    slo.tpot = limit;
  } else if (name == "e2e") {
    slo.e2e = limit;
  } else {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is no latency; use ttft (time to first token), tpot (time per output token) "
                "or e2e (the whole answer)",
                name);
  }
  return {};
}

std::string limit_text(Nanoseconds limit) {
  return fmt::format("{}ms", std::chrono::duration<double, std::milli>(limit).count());
}

}  // namespace

Result<Nanoseconds> parse_duration(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& known : kUnits) {
    if (error != std::errc() || unit != known.name) continue;
    const double seconds = value * known.seconds;
    if (!(seconds > 0) || seconds > kLongestSeconds) break;
    return Nanoseconds(std::llround(seconds * 1e9));
  }
  return fail(ErrorCode::kInvalidArgument,
              "'{}' is no time; write a number above zero and us, ms, s, min or h, as in 500ms",
              text);
}

Result<Slo> parse_slo(std::string_view text) {
  Slo slo;
  while (!text.empty()) {
    const std::string_view part = trimmed(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(
        text.size(), text.find(',') == std::string_view::npos ? text.size() : text.find(',') + 1));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument, "'{}' is no limit; write it as in ttft=500ms", part);
    }
    SPUD_TRY(const Nanoseconds limit, parse_duration(part.substr(equals + 1)));
    SPUD_TRY(set_limit(part.substr(0, equals), limit, slo));
  }
  return slo;
}

std::string to_string(const Slo& slo) {
  std::string text;
  const auto add = [&text](std::string_view name, const std::optional<Nanoseconds>& limit) {
    if (!limit) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, limit_text(*limit));
  };
  add("ttft", slo.ttft);
  add("tpot", slo.tpot);
  add("e2e", slo.e2e);
  return text;
}

bool Slo::met_by(const Outcome& outcome) const noexcept {
  if (!outcome.ok()) return false;
  return (!ttft || outcome.time_to_first_token() <= *ttft) &&
         (!tpot || outcome.time_per_output_token() <= *tpot) &&
         (!e2e || outcome.end_to_end() <= *e2e);
}

}  // namespace spud::loadgen
