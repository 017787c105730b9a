// SPDX-License-Identifier: Apache-2.0
// Follows the events of one streamed answer and notes when text came. Only events that may hold
// more than text are parsed as JSON: at thousands of tokens a second the generator must not take
// the processor from the server beside it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "http/sse.hpp"
#include "loadgen/outcome.hpp"

namespace spud::loadgen {

// Thread-compatible.
class StreamReader {
 public:
  // `outcome` outlives the reader.
  explicit StreamReader(Outcome& outcome) : outcome_(outcome) {}

  // `now` since the run began. False: the stream is not what it should be, or says an error.
  bool push(std::string_view bytes, Nanoseconds now);
  // After the last byte: kOk, or what is missing.
  void finish(Nanoseconds now);
  const std::string& message() const noexcept { return message_; }

 private:
  void take_event(std::string_view data, Nanoseconds now);
  void take_text(Nanoseconds now);
  void take_json(std::string_view data, Nanoseconds now);
  void fail_with(OutcomeKind kind, std::string message);

  Outcome& outcome_;
  http::SseParser parser_;
  std::string message_;
  std::int64_t text_events_ = 0;
  bool failed_ = false;
  bool saw_usage_ = false;
  bool saw_end_ = false;
};

}  // namespace spud::loadgen
