// SPDX-License-Identifier: Apache-2.0
// Server-sent events: the first byte says where the stream is cut in two; the events must be the
// same as without the cut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "fuzz_target.hpp"
#include "http/sse.hpp"

namespace {

std::vector<std::string> parse(std::string_view first, std::string_view second) {
  spud::http::SseParser parser(1 << 16);
  std::vector<std::string> events;
  const auto keep = [&events](const spud::http::SseEvent& event) {
    events.push_back(event.type + '\0' + event.id + '\0' + event.data);
  };
  if (parser.push(first, keep)) static_cast<void>(parser.push(second, keep));
  return events;
}

}  // namespace

std::vector<std::string> spud::fuzz::fuzz_seeds() {
  return {
      "\x40: hello\r\ndata: {\"a\":1}\r\n\r\ndata:no space\n\n",
      "\x80\xEF\xBB\xBF"
      "event: error\rdata: one\rdata:\rdata: three\r\r",
      "\xC0id: 7\ndata:  two spaces\n\nnonsense\ndata\n\ndata: [DONE]\n\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = stream.size() * data[0] / 255;
  SPUD_CHECK(parse(stream, "") == parse(stream.substr(0, cut), stream.substr(cut)));
  return 0;
}
