// SPDX-License-Identifier: Apache-2.0
// The answering half of a connection: heads, bodies and chunks, each piece under a deadline.
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <ctime>

#include "http/internal/connection.hpp"

namespace spud::http::internal {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kWritePiece = 64 << 10;

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return std::string(text, size);
}

// A header value must not be able to end its line, whoever made it.
void append_header(std::string& head, std::string_view name, std::string_view value) {
  head += name;
  head += ": ";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) head += c;
  }
  head += "\r\n";
}

}  // namespace

std::string Connection::make_head(const Response& response,
                                  std::optional<std::size_t> content_length) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  append_header(head, "Server", server_.options.server_name);
  append_header(head, "Date", http_date());
  if (!response.content_type.empty() && response.status != 204) {
    append_header(head, "Content-Type", response.content_type);
  }
  if (content_length && response.status != 204) {
    append_header(head, "Content-Length", fmt::format("{}", *content_length));
  } else if (!content_length && !http_1_0_) {
    append_header(head, "Transfer-Encoding", "chunked");
  }
  for (const auto& [name, value] : response.headers.entries()) append_header(head, name, value);
  append_header(head, "Connection", keep_alive_ && !server_.stopping ? "keep-alive" : "close");
  head += "\r\n";
  return head;
}

asio::awaitable<Result<void>> Connection::respond(Response response) {
  status_ = response.status;
  std::string head = make_head(response, response.body.size());
  const bool no_body = request_.method == "HEAD" || response.status == 204;
  const std::string_view body = no_body ? std::string_view() : std::string_view(response.body);
  co_return co_await send(std::move(head), body);
}

asio::awaitable<Result<void>> Connection::begin_stream(Response head) {
  status_ = head.status;
  streaming_ = true;
  if (http_1_0_) keep_alive_ = false;  // the end of the stream is the end of the connection
  held_head_ = make_head(head, std::nullopt);
  co_return Result<void>();
}

asio::awaitable<Result<void>> Connection::write(std::string bytes) {
  if (bytes.empty()) co_return Result<void>();
  std::string framed = std::exchange(held_head_, {});
  if (http_1_0_) {
    framed += bytes;
  } else {
    fmt::format_to(std::back_inserter(framed), "{:x}\r\n{}\r\n", bytes.size(), bytes);
  }
  co_return co_await send(std::move(framed), std::string_view());
}

asio::awaitable<Result<void>> Connection::finish_stream() {
  streaming_ = false;
  std::string last = std::exchange(held_head_, {});
  if (!http_1_0_) last += "0\r\n\r\n";
  if (last.empty()) co_return Result<void>();
  co_return co_await send(std::move(last), std::string_view());
}

asio::awaitable<Result<void>> Connection::send(std::string head, std::string_view body) {
  if (body.size() <= kWritePiece) {
    head += body;  // one packet instead of two
    body = {};
  }
  for (std::string_view rest : {std::string_view(head), body}) {
    while (!rest.empty()) {
      const std::size_t size = std::min(rest.size(), kWritePiece);
      const Result<void> sent = co_await send_piece(rest.substr(0, size));
      if (!sent) co_return sent;
      rest.remove_prefix(size);
    }
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> Connection::send_piece(std::string_view bytes) {
  if (gone_ || !socket_.is_open()) {
    co_return fail(ErrorCode::kCancelled, "the client is gone");
  }
  arm(server_.options.write_timeout, OnTimeout::kClose);
  error_code error;
  co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()),
                             asio::redirect_error(asio::use_awaitable, error));
  disarm();
  if (!error) co_return Result<void>();
  gone_ = true;
  if (timed_out_) {
    co_return fail(ErrorCode::kDeadlineExceeded, "the client reads its answer too slowly");
  }
  co_return fail(ErrorCode::kCancelled, "the client is gone");
}

}  // namespace spud::http::internal
