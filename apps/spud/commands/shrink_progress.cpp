// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/shrink_progress.hpp"

#include <fmt/format.h>

#include "compress/report/figures.hpp"

namespace spud::app {
namespace {

using compress::ChainEvent;

std::string title_of(const ChainEvent& event) {
  std::string title(event.step);
  if (!event.alternative.empty()) title += fmt::format(" {}", event.alternative);
  if (!title.empty()) title += ": ";
  return title + std::string(event.activity);
}

}  // namespace

void ShrinkProgress::on_event(const ChainEvent& event) {
  if (quiet_) return;
  if (event.kind == ChainEvent::Kind::kProgress) {
    show(event);
    return;
  }
  end_bar();
  std::string line(event.text);
  if (event.kind == ChainEvent::Kind::kNote) {
    line = styled(terminal_, console::Style::kWarning, "note: " + line);
  }
  if (event.attempt != nullptr) {
    const bool good = event.attempt->decision == compress::Decision::kAccepted;
    line = fmt::format("{} {}: {}. {}", event.step, compress::report::attempt_name(*event.attempt),
                       styled(terminal_, good ? console::Style::kGood : console::Style::kBad,
                              compress::report::verdict_word(*event.attempt)),
                       event.attempt->reason);
  }
  if (!line.empty()) console::write_stderr(line + "\n");
}

void ShrinkProgress::show(const ChainEvent& event) {
  std::string title = title_of(event);
  if (bar_ == nullptr || title != title_ || event.total != total_) {
    end_bar();
    title_ = std::move(title);
    total_ = event.total;
    bar_ = std::make_unique<console::Progress>(
        terminal_, clock_, console::write_stderr,
        console::Progress::Options{.title = title_, .total = event.total});
  }
  bar_->set_total(event.total);  // a gate that cannot decide yet draws more text
  bar_->update(event.done, event.text);
}

void ShrinkProgress::end_bar() {
  if (bar_ != nullptr) bar_->finish();
  bar_.reset();
  title_.clear();
}

}  // namespace spud::app
