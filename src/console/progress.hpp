// SPDX-License-Identifier: Apache-2.0
// Progress of long work with an estimate of what is left: a bar that redraws itself on a terminal,
// otherwise a plain line at the start, at most one every ten seconds, and one at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "concurrency/clock.hpp"
#include "console/terminal.hpp"

namespace spud::console {

// Thread-compatible. Writes through `write` (standard error in the program, a string in tests).
class Progress {
 public:
  using Writer = std::function<void(std::string_view)>;

  struct Options {
    std::string title;       // "measuring int8"
    std::string unit = "";   // "windows"
    std::int64_t total = 0;  // 0 = unknown: no bar, no estimate
    bool quiet = false;      // writes nothing
  };
  Progress(const Terminal& terminal, const concurrency::Clock& clock, Writer write,
           Options options);
  ~Progress();  // as finish(), without the closing line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Some work turns out to be more than was thought.
  void set_total(std::int64_t total) { options_.total = total; }
  // `done` of total; `note` is shown behind (a running figure).
  void update(std::int64_t done, std::string_view note = {});
  // Replaces the bar by one closing line: "measuring int8: 40 windows in 12.3 s - <note>".
  void finish(std::string_view note = {});

 private:
  std::string bar_line(std::int64_t done, std::string_view note) const;
  std::string plain_line(std::int64_t done, std::string_view note) const;
  std::string estimate(std::int64_t done) const;

  Terminal terminal_;
  const concurrency::Clock* clock_;
  Writer write_;
  Options options_;
  concurrency::SteadyTime started_;
  concurrency::SteadyTime last_shown_;
  std::int64_t done_ = 0;
  bool bar_visible_ = false;
  bool finished_ = false;
};

// Writes to standard error.
void write_stderr(std::string_view text);

}  // namespace spud::console
