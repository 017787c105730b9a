// SPDX-License-Identifier: Apache-2.0
#include "console/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "console/text.hpp"

namespace spud::console {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);
constexpr auto kPlainLineEvery = std::chrono::seconds(10);
constexpr std::string_view kClearLine = "\r\x1b[2K";
constexpr int kBarColumns = 24;

}  // namespace

Progress::Progress(const Terminal& terminal, const concurrency::Clock& clock, Writer write,
                   Options options)
    : terminal_(terminal),
      clock_(&clock),
      write_(std::move(write)),
      options_(std::move(options)),
      started_(clock.now()),
      last_shown_(started_) {
  if (options_.quiet) return;
  if (terminal_.interactive) {
    write_(bar_line(0, {}));
    bar_visible_ = true;
  } else {
    write_(options_.title + " ...\n");
  }
}

Progress::~Progress() {
  if (bar_visible_ && !finished_) write_(kClearLine);
}

std::string Progress::estimate(std::int64_t done) const {
  if (done <= 0 || done >= options_.total) return "";
  const auto elapsed = clock_->now() - started_;
  const double left = static_cast<double>(options_.total - done) / static_cast<double>(done);
  return ", " +
         format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed * left)) +
         " left";
}

std::string Progress::bar_line(std::int64_t done, std::string_view note) const {
  std::string line;
  if (options_.total > 0) {
    const double part =
        std::clamp(static_cast<double>(done) / static_cast<double>(options_.total), 0.0, 1.0);
    const int full = static_cast<int>(part * kBarColumns);
    line = fmt::format("{} [{}{}] {}/{}{}", options_.title, std::string(full, '='),
                       std::string(kBarColumns - full, ' '), done, options_.total, estimate(done));
  } else {
    line = fmt::format("{} {} {}", options_.title, done, options_.unit);
  }
  if (!note.empty()) line += fmt::format(" - {}", note);
  const auto width = static_cast<std::size_t>(std::max(terminal_.width - 1, 20));
  return std::string(kClearLine) + printable(line, width);
}

std::string Progress::plain_line(std::int64_t done, std::string_view note) const {
  std::string line = fmt::format("{}: {}", options_.title, done);
  if (options_.total > 0) line += fmt::format("/{}", options_.total);
  if (!options_.unit.empty()) line += " " + options_.unit;
  line += estimate(done);
  if (!note.empty()) line += fmt::format(" - {}", note);
  return line + "\n";
}

void Progress::update(std::int64_t done, std::string_view note) {
  done_ = done;
  if (options_.quiet || finished_) return;
  const auto now = clock_->now();
  if (now - last_shown_ < (terminal_.interactive ? std::chrono::nanoseconds(kRedrawEvery)
                                                 : std::chrono::nanoseconds(kPlainLineEvery))) {
    return;
  }
  last_shown_ = now;
  write_(terminal_.interactive ? bar_line(done, note) : plain_line(done, note));
}

void Progress::finish(std::string_view note) {
  if (finished_) return;
  finished_ = true;
  if (options_.quiet) return;
  const std::int64_t done = options_.total > 0 ? options_.total : done_;
  std::string line = options_.title + ":";
  if (done > 0)
    line += fmt::format(" {}{}{}", done, options_.unit.empty() ? "" : " ", options_.unit);
  line += fmt::format(" in {}", format_duration(clock_->now() - started_));
  if (!note.empty()) line += fmt::format(" - {}", note);
  if (bar_visible_) line = std::string(kClearLine) + line;
  write_(line + "\n");
}

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace spud::console
