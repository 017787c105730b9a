// SPDX-License-Identifier: Apache-2.0
// Turns the events of a chain into what a waiting person reads: a bar per activity, a line per
// verdict.
#pragma once

#include <memory>
#include <string>

#include "compress/chain.hpp"
#include "concurrency/clock.hpp"
#include "console/progress.hpp"
#include "console/terminal.hpp"

namespace spud::app {

// Thread-compatible: called on the thread that runs the chain.
class ShrinkProgress {
 public:
  ShrinkProgress(const console::Terminal& terminal, const concurrency::Clock& clock, bool quiet)
      : terminal_(terminal), clock_(clock), quiet_(quiet) {}

  void on_event(const compress::ChainEvent& event);

 private:
  void show(const compress::ChainEvent& event);
  void end_bar();

  console::Terminal terminal_;
  const concurrency::Clock& clock_;
  bool quiet_;
  std::string title_;  // of the bar in work
  std::int64_t total_ = 0;
  std::unique_ptr<console::Progress> bar_;
};

}  // namespace spud::app
