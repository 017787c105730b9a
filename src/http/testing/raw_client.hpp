// SPDX-License-Identifier: Apache-2.0
// A blocking socket for tests: sends any bytes, reads with a deadline, and knows just enough HTTP
// to tell where an answer ends. Misbehaves on purpose where a real client would not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spud::http::testing {

struct RawAnswer {
  int status = 0;    // 0: the connection ended before a status line
  std::string head;  // with the status line
  std::string body;  // chunks joined
  bool complete = false;

  // The first value of that header, "" when absent.
  std::string header(std::string_view name) const;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes);
  void close_sending();  // half-close
  void close();          // also with unread input: a reset
  // One answer; further bytes stay for the next one. `head_request`: it has no body.
  RawAnswer read_answer(bool head_request = false);
  // Reads until the text was received (true), or the end or 10 s (false).
  bool read_until(std::string_view text);
  bool at_end();  // the server closed its side
  const std::string& received() const noexcept { return received_; }

 private:
  bool receive_more();

  int fd_ = -1;
  bool ended_ = false;
  std::string received_;
};

std::string get_request(std::string_view path, std::string_view headers = "");
std::string post_request(std::string_view path, std::string_view body,
                         std::string_view headers = "");

}  // namespace spud::http::testing
