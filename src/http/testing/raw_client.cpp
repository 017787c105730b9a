// SPDX-License-Identifier: Apache-2.0
#include "http/testing/raw_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

#include "base/check.hpp"
#include "http/message.hpp"

namespace spud::http::testing {

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  SPUD_CHECK(fd_ >= 0);
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SPUD_CHECK(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

RawClient::~RawClient() { close(); }

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server closed: tests look at what it said
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RawClient::close_sending() { ::shutdown(fd_, SHUT_WR); }

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool RawClient::receive_more() {
  char piece[4096];
  const ssize_t size = ::recv(fd_, piece, sizeof piece, 0);
  if (size <= 0) {
    ended_ = true;
    return false;
  }
  received_.append(piece, static_cast<std::size_t>(size));
  return true;
}

bool RawClient::read_until(std::string_view text) {
  while (received_.find(text) == std::string::npos) {
    if (!receive_more()) return false;
  }
  return true;
}

bool RawClient::at_end() {
  while (!ended_) receive_more();
  return true;
}

std::string RawAnswer::header(std::string_view name) const {
  std::size_t begin = 0;
  while (begin < head.size()) {
    const std::size_t end = head.find("\r\n", begin);
    const std::string_view line = std::string_view(head).substr(begin, end - begin);
    const std::size_t colon = line.find(": ");
    if (colon != line.npos && equal_ignoring_case(line.substr(0, colon), name)) {
      return std::string(line.substr(colon + 2));
    }
    if (end == std::string::npos) break;
    begin = end + 2;
  }
  return "";
}

RawAnswer RawClient::read_answer(bool head_request) {
  RawAnswer answer;
  if (!read_until("\r\n\r\n")) return answer;
  const std::size_t head_end = received_.find("\r\n\r\n") + 4;
  answer.head = received_.substr(0, head_end);
  received_.erase(0, head_end);
  answer.status = std::atoi(answer.head.c_str() + answer.head.find(' '));
  if (head_request || answer.status == 204) {
    answer.complete = true;
    return answer;
  }
  if (answer.header("Transfer-Encoding") == "chunked") {
    while (true) {
      if (!read_until("\r\n")) return answer;
      const std::size_t size = std::strtoul(received_.c_str(), nullptr, 16);
      received_.erase(0, received_.find("\r\n") + 2);
      while (received_.size() < size + 2) {
        if (!receive_more()) return answer;
      }
      answer.body += received_.substr(0, size);
      received_.erase(0, size + 2);
      if (size == 0) break;
    }
  } else if (!answer.header("Content-Length").empty()) {
    const std::size_t size = std::strtoul(answer.header("Content-Length").c_str(), nullptr, 10);
    while (received_.size() < size) {
      if (!receive_more()) return answer;
    }
    answer.body = received_.substr(0, size);
    received_.erase(0, size);
  } else {
    at_end();
    answer.body = std::exchange(received_, {});
  }
  answer.complete = true;
  return answer;
}

std::string get_request(std::string_view path, std::string_view headers) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: test\r\n{}\r\n", path, headers);
}

std::string post_request(std::string_view path, std::string_view body, std::string_view headers) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n{}\r\n{}", path,
                     body.size(), headers, body);
}

}  // namespace spud::http::testing
