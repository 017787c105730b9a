// SPDX-License-Identifier: Apache-2.0
// Server-sent events, both ways (WHATWG HTML, section 9.2). The parser takes bytes in pieces cut
// anywhere; CR, LF and CRLF line ends, comments, several data lines and "data:" without a space are
// all one to it. Retry and last-event-id handling are left to the caller.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace spud::http {

struct SseEvent {
  std::string type;  // "" means "message"
  std::string data;
  std::string id;
};

// Thread-compatible.
class SseParser {
 public:
  explicit SseParser(std::size_t max_event_bytes = std::size_t{4} << 20)
      : max_event_bytes_(max_event_bytes) {}

  using OnEvent = std::function<void(const SseEvent&)>;
  // Calls `on_event` for each event completed by `bytes`. kResourceExhausted when one event or line
  // exceeds the limit; the parser must not be used afterwards.
  [[nodiscard]] Result<void> push(std::string_view bytes, const OnEvent& on_event);

 private:
  void end_line(const OnEvent& on_event);

  std::size_t max_event_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool at_start_ = true;  // a byte order mark may come first
};

// "data: {...}\n\n"; a payload with line breaks becomes several data lines.
std::string sse_data(std::string_view payload);
// ": text\n\n": keeps proxies from closing a quiet stream.
std::string sse_comment(std::string_view text);

}  // namespace spud::http
