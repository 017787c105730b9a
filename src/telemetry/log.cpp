// SPDX-License-Identifier: Apache-2.0
#include "telemetry/log.hpp"

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>

#include "base/suggest.hpp"

namespace spud::telemetry {
namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"trace", "debug", "info",
                                                         "warn",  "error", "off"};
// Event texts are constants of the program, so this many are never reached in practice.
constexpr std::size_t kMaxTrackedEvents = 1024;

spdlog::level::level_enum to_spdlog(Level level) noexcept {
  switch (level) {
    case Level::trace:
      return spdlog::level::trace;
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
    case Level::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\';
  });
}

// spdlog hands a sink the finished payload; the event text is what stands before this byte, so that
// the rate limit can key on it.
constexpr char kEventEnd = '\x1f';

// Thread-safe.
class LimitingSink final : public spdlog::sinks::sink {
 public:
  explicit LimitingSink(const LogOptions& options) : options_(options) {}

  void log(const spdlog::details::log_msg& message) override {
    const std::string_view payload(message.payload.data(), message.payload.size());
    const std::size_t end = payload.find(kEventEnd);
    const std::string_view event = payload.substr(0, end);
    const std::string_view line = end == payload.npos ? payload : payload.substr(end + 1);
    const std::lock_guard lock(mutex_);
    std::uint64_t held_back = 0;
    if (!admit(event, held_back)) return;
    if (held_back > 0 && options_.format == LogFormat::kText) {
      fmt::print(stderr, "{} held_back={}\n", line, held_back);
    } else if (held_back > 0 && line.ends_with('}')) {
      fmt::print(stderr, "{},\"held_back\":{}}}\n", line.substr(0, line.size() - 1), held_back);
    } else {
      fmt::print(stderr, "{}\n", line);
    }
  }
  void flush() override { std::fflush(stderr); }
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  struct Window {
    // Not the message's own time: that is wall time, and whoever sets it would open or close
    // windows.
    std::chrono::steady_clock::time_point start;
    std::uint32_t count = 0;
    std::uint64_t held_back = 0;
  };

  bool admit(std::string_view event, std::uint64_t& held_back) {
    if (options_.window_seconds == 0) return true;
    const auto now = std::chrono::steady_clock::now();
    auto it = windows_.find(event);
    if (it == windows_.end()) {
      if (windows_.size() >= kMaxTrackedEvents) return true;
      it = windows_.emplace(std::string(event), Window{.start = now}).first;
    }
    Window& window = it->second;
    if (now - window.start >= std::chrono::seconds(options_.window_seconds)) {
      held_back = std::exchange(window.held_back, 0);
      window.start = now;
      window.count = 0;
    }
    if (++window.count <= options_.burst) return true;
    ++window.held_back;
    return false;
  }

  const LogOptions options_;
  std::mutex mutex_;
  std::map<std::string, Window, std::less<>> windows_;
};

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, millis);
}

// The format lives in the logger's name: the default logger is the only shared state there is.
constexpr const char* kJsonLoggerName = "spud-json";

}  // namespace

void init_logging(const LogOptions& options) {
  auto logger = std::make_shared<spdlog::logger>(
      options.format == LogFormat::kJson ? kJsonLoggerName : "spud",
      std::make_shared<LimitingSink>(options));
  logger->set_level(to_spdlog(options.level));
  spdlog::set_default_logger(std::move(logger));
}

Result<Level> parse_level(std::string_view name) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<Level>(i);
  }
  return fail(ErrorCode::kInvalidArgument, "unknown log level '{}'{}", name,
              suggestion_text(name, kLevelNames));
}

bool log_enabled(Level level) noexcept {
  const auto* logger = spdlog::default_logger_raw();
  return logger != nullptr && logger->should_log(to_spdlog(level));
}

std::string format_line(LogFormat format, std::string_view time, Level level,
                        std::string_view event, std::initializer_list<Field> fields) {
  const std::string_view level_name = kLevelNames[static_cast<std::size_t>(level)];
  std::string line;
  if (format == LogFormat::kJson) {
    line = fmt::format(R"({{"time":"{}","level":"{}","event":)", time, level_name);
    append_json_string(line, event);
    for (const Field& field : fields) {
      line += ',';
      append_json_string(line, field.key);
      line += ':';
      if (field.is_text) {
        append_json_string(line, field.value);
      } else {
        line += field.value;
      }
    }
    line += '}';
    return line;
  }
  line = fmt::format("{} {:<5} {}", time, level_name, event);
  for (const Field& field : fields) {
    fmt::format_to(std::back_inserter(line), " {}=", field.key);
    if (needs_quotes(field.value)) {
      append_json_string(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

void log(Level level, std::string_view event, std::initializer_list<Field> fields) {
  const auto logger = spdlog::default_logger();
  if (logger == nullptr) return;
  const bool json = logger->name() == kJsonLoggerName;
  const std::string line =
      format_line(json ? LogFormat::kJson : LogFormat::kText, now_text(), level, event, fields);
  logger->log(to_spdlog(level),
              spdlog::string_view_t(fmt::format("{}{}{}", event, kEventEnd, line)));
}

}  // namespace spud::telemetry
