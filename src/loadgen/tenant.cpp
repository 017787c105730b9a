// SPDX-License-Identifier: Apache-2.0
#include "loadgen/tenant.hpp"

#include <charconv>
#include <cmath>
#include <utility>

namespace spud::loadgen {
namespace {

constexpr std::pair<std::string_view, ArrivalKind> kArrivals[] = {
    {"poisson", ArrivalKind::kPoisson},   {"gamma", ArrivalKind::kGamma},
    {"constant", ArrivalKind::kConstant}, {"burst", ArrivalKind::kBurst},
    {"trace", ArrivalKind::kTrace},       {"closed", ArrivalKind::kClosed},
};

constexpr std::int64_t kMaxTokens = 1 << 24;
constexpr std::int64_t kMaxClients = 1 << 16;

template <typename Number>
Result<Number> parse_number(std::string_view name, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::kInvalidArgument, "{} must be a number, not '{}'", name, text);
  }
  return value;
}

Result<void> set_field(std::string_view name, std::string_view value, TenantOptions& tenant) {
  if (name == "name") {
    tenant.name = value;
  } else if (name == "key") {
    tenant.api_key = value;
  } else if (name == "arrivals") {
    SPUD_TRY(tenant.arrivals, parse_arrivals(value));
  } else if (name == "rate") {
    SPUD_TRY(tenant.rate, parse_number<double>(name, value));
  } else if (name == "cv") {
    SPUD_TRY(tenant.cv, parse_number<double>(name, value));
  } else if (name == "clients") {
    SPUD_TRY(tenant.clients, parse_number<std::int64_t>(name, value));
    tenant.arrivals = ArrivalKind::kClosed;
  } else if (name == "requests") {
    SPUD_TRY(tenant.requests, parse_number<std::int64_t>(name, value));
  } else if (name == "start") {
    SPUD_TRY(tenant.start_s, parse_number<double>(name, value));
  } else if (name == "prompt") {
    SPUD_TRY(tenant.prompt, parse_lengths(value));
  } else if (name == "output") {
    SPUD_TRY(tenant.output, parse_lengths(value));
  } else if (name == "prefix") {
    SPUD_TRY(tenant.shared_prefix, parse_number<std::int64_t>(name, value));
  } else {
    return fail(ErrorCode::kInvalidArgument,
                "a tenant has no '{}'; it has name, key, arrivals, rate, cv, clients, requests, "
                "start, prompt, output and prefix",
                name);
  }
  return {};
}

bool in_range(const Lengths& lengths) {
  return lengths.least >= 1 && lengths.most >= lengths.least && lengths.most <= kMaxTokens;
}

}  // namespace

Result<Lengths> parse_lengths(std::string_view text) {
  const auto dash = text.find('-');
  Lengths lengths;
  SPUD_TRY(lengths.least, parse_number<std::int64_t>("a length", text.substr(0, dash)));
  lengths.most = lengths.least;
  if (dash != std::string_view::npos) {
    SPUD_TRY(lengths.most, parse_number<std::int64_t>("a length", text.substr(dash + 1)));
  }
  if (!in_range(lengths)) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' is no length; write tokens, at least 1, as in 128 or 100-200", text);
  }
  return lengths;
}

Result<ArrivalKind> parse_arrivals(std::string_view name) {
  for (const auto& [known, kind] : kArrivals) {
    if (known == name) return kind;
  }
  return fail(ErrorCode::kInvalidArgument,
              "arrivals '{}' are unknown; use poisson, gamma, constant, burst, trace or closed",
              name);
}

Result<TenantOptions> parse_tenant(std::string_view text, TenantOptions base) {
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(text.size(), comma + 1));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument, "'{}' is no part of a tenant; write it as in rate=2",
                  part);
    }
    SPUD_TRY(set_field(part.substr(0, equals), part.substr(equals + 1), base));
  }
  SPUD_TRY(base.validate());
  return base;
}

Result<void> TenantOptions::validate() const {
  constexpr double kMaxRate = 1e5;
  const auto refuse = [this](std::string_view what) {
    return fail(ErrorCode::kInvalidArgument, "tenant '{}': {}", name, what);
  };
  if (!(rate > 0) || rate > kMaxRate) return refuse("the rate must be above 0 and at most 100000");
  if (!(cv > 0) || cv > 100) return refuse("cv must be above 0 and at most 100");
  if (!(speed > 0) || speed > 1e6) return refuse("the speed must be above 0 and at most 1000000");
  if (clients < 1 || clients > kMaxClients) return refuse("clients must be 1 to 65536");
  if (requests < 0) return refuse("requests must not be negative");
  if (!(start_s >= 0)) return refuse("start must not be negative");
  if (!in_range(prompt) || !in_range(output)) return refuse("lengths must be at least 1 token");
  if (shared_prefix < 0 || shared_prefix > kMaxTokens) return refuse("the prefix is out of range");
  if (arrivals == ArrivalKind::kTrace && trace.empty()) return refuse("a trace was not given");
  if (arrivals == ArrivalKind::kBurst && requests == 0) return refuse("a burst needs requests=N");
  return {};
}

}  // namespace spud::loadgen
