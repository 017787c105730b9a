// SPDX-License-Identifier: Apache-2.0
// Structured logs on standard error: a constant event text and key/value fields, as text for people
// or as one JSON object a line. A line that repeats is rate-limited by its event text, and the next
// one that passes says how many were held back.
//
//   SPUD_LOG(warn, "kv pages low", {"free", free}, {"total", total});
//
// error = someone must act; warn = degraded but served; info = life cycle; debug = per request;
// trace = per step. Library code never prints by other means. The sink is spdlog's default logger,
// installed by init_logging(); before that nothing below `warn` is shown.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"

namespace spud::telemetry {

// Lower case, so that SPUD_LOG(warn, ...) reads as it should.
// NOLINTNEXTLINE(readability-identifier-naming)
enum class Level { trace, debug, info, warn, error, off };

struct Field {
  std::string_view key;  // must be a constant
  std::string value;
  bool is_text = true;  // false: a number or a boolean, printed without quotes in JSON

  template <typename T>
  Field(std::string_view k, const T& v) : key(k), value(fmt::format("{}", v)) {
    is_text = !std::is_arithmetic_v<T>;
  }
};

enum class LogFormat { kText, kJson };

struct LogOptions {
  Level level = Level::info;
  LogFormat format = LogFormat::kText;
  std::uint32_t burst = 20;           // lines of one event text per window
  std::uint32_t window_seconds = 10;  // 0 = no rate limit
};

// Thread-safe; call once at start. Later calls replace the sink.
void init_logging(const LogOptions& options);

// "trace", "debug", "info", "warn", "error", "off".
[[nodiscard]] Result<Level> parse_level(std::string_view name);

bool log_enabled(Level level) noexcept;
void log(Level level, std::string_view event, std::initializer_list<Field> fields);

// One line without its newline, as the sinks print it; exposed for tests.
std::string format_line(LogFormat format, std::string_view time, Level level,
                        std::string_view event, std::initializer_list<Field> fields);

}  // namespace spud::telemetry

#define SPUD_LOG(level, event, ...)                                                    \
  do {                                                                                 \
    if (::spud::telemetry::log_enabled(::spud::telemetry::Level::level))               \
      ::spud::telemetry::log(::spud::telemetry::Level::level, (event), {__VA_ARGS__}); \
  } while (false)
