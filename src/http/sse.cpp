// SPDX-License-Identifier: Apache-2.0
#include "http/sse.hpp"

namespace spud::http {

Result<void> SseParser::push(std::string_view bytes, const OnEvent& on_event) {
  for (const char c : bytes) {
    if (after_cr_) {
      after_cr_ = false;
      if (c == '\n') continue;  // the second half of CRLF
    }
    if (c == '\n' || c == '\r') {
      after_cr_ = c == '\r';
      end_line(on_event);
      continue;
    }
    if (line_.size() + event_.data.size() >= max_event_bytes_) {
      return fail(ErrorCode::kResourceExhausted, "a server-sent event is longer than {} bytes",
                  max_event_bytes_);
    }
    line_ += c;
    if (at_start_ && line_.size() == 3) {
      at_start_ = false;
      if (line_ == "\xEF\xBB\xBF") line_.clear();
    }
  }
  return {};
}

void SseParser::end_line(const OnEvent& on_event) {
  at_start_ = false;
  if (line_.empty()) {
    if (has_data_) {
      event_.data.pop_back();  // the newline after the last data line
      on_event(event_);
    }
    // The id stays for later events, as the standard says.
    event_.type.clear();
    event_.data.clear();
    has_data_ = false;
    return;
  }
  const std::string_view line = line_;
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == line.npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    event_.data += value;
    event_.data += '\n';
    has_data_ = true;
  } else if (field == "event") {
    event_.type = value;
  } else if (field == "id" && value.find('\0') == value.npos) {
    event_.id = value;
  }
  line_.clear();
}

std::string sse_data(std::string_view payload) {
  std::string out;
  out.reserve(payload.size() + 8);
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = payload.find_first_of("\r\n", begin);
    out += "data: ";
    out += payload.substr(begin, end == payload.npos ? payload.npos : end - begin);
    out += '\n';
    if (end == payload.npos) break;
    begin = end + (payload.substr(end, 2) == "\r\n" ? 2 : 1);
  }
  out += '\n';
  return out;
}

std::string sse_comment(std::string_view text) { return fmt::format(": {}\n\n", text); }

}  // namespace spud::http
