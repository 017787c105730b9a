// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

namespace spud::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

namespace {

Error to_error(error_code error, std::string_view doing) {
  const ErrorCode code = error == beast::error::timeout            ? ErrorCode::kDeadlineExceeded
                         : error == asio::error::operation_aborted ? ErrorCode::kCancelled
                                                                   : ErrorCode::kDataLoss;
  return Error(code, fmt::format("{}: {}", doing, error.message()));
}

std::string make_head(const ClientRequest& request) {
  const bool is_ipv6 = request.url.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? fmt::format("[{}]", request.url.host) : request.url.host;
  std::string head =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n", request.method,
                  request.url.path, request.path, host, request.url.port);
  for (const auto& [name, value] : request.headers.entries()) {
    head += fmt::format("{}: {}\r\n", name, value);
  }
  if (!request.body.empty()) {
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n",
                        request.body.size());
  }
  head += "\r\n";
  return head;
}

asio::awaitable<Result<void>> connect(beast::tcp_stream& stream, const Url& url,
                                      std::chrono::milliseconds limit) {
  asio::ip::tcp::resolver resolver(stream.get_executor());
  error_code error;
  const auto endpoints = co_await resolver.async_resolve(
      url.host, url.port, asio::redirect_error(asio::use_awaitable, error));
  if (!error) {
    stream.expires_after(limit);
    co_await stream.async_connect(endpoints, asio::redirect_error(asio::use_awaitable, error));
  }
  if (!error) co_return Result<void>();
  co_return fail(ErrorCode::kUnavailable, "cannot connect to {}:{}: {}", url.host, url.port,
                 error.message());
}

using Parser = beast::http::response_parser<beast::http::buffer_body>;

asio::awaitable<Result<void>> read_body(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                        Parser& parser, std::chrono::milliseconds idle_limit,
                                        const OnBody& on_body) {
  std::array<char, 8192> piece;
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    stream.expires_after(idle_limit);
    error_code error;
    co_await beast::http::async_read_some(stream, buffer, parser,
                                          asio::redirect_error(asio::use_awaitable, error));
    if (error == beast::http::error::need_buffer) error = {};
    const std::size_t size = piece.size() - body.size;
    if (size > 0 && on_body && !on_body(std::string_view(piece.data(), size))) break;
    if (error == beast::http::error::body_limit) {
      co_return fail(ErrorCode::kResourceExhausted, "the answer is longer than the limit");
    }
    if (error) co_return std::unexpected(to_error(error, "the answer broke off"));
  }
  co_return Result<void>();
}

}  // namespace

asio::awaitable<Result<ResponseHead>> fetch(asio::any_io_executor executor, ClientRequest request,
                                            ClientOptions options, OnHead on_head, OnBody on_body) {
  // Cancellation arrives as operation_aborted from the operation that waits, not as an exception.
  co_await asio::this_coro::throw_if_cancelled(false);
  beast::tcp_stream stream(executor);
  SPUD_CO_TRY(co_await connect(stream, request.url, options.connect_timeout));

  const std::string text = make_head(request) + request.body;
  error_code error;
  stream.expires_after(options.head_timeout);
  co_await asio::async_write(stream, asio::buffer(text),
                             asio::redirect_error(asio::use_awaitable, error));
  // A server may refuse before it has read all: what it says matters more than the broken write.
  const error_code write_error = error;
  beast::flat_buffer buffer(std::size_t{128} << 10);
  Parser parser;
  parser.body_limit(options.max_body_bytes);
  co_await beast::http::async_read_header(stream, buffer, parser,
                                          asio::redirect_error(asio::use_awaitable, error));
  if (error) {
    co_return std::unexpected(to_error(write_error ? write_error : error, "no answer"));
  }
  ResponseHead head{.status = static_cast<int>(parser.get().result_int())};
  for (const auto& field : parser.get()) head.headers.add(field.name_string(), field.value());
  if (on_head && !on_head(head)) co_return head;
  SPUD_CO_TRY(co_await read_body(stream, buffer, parser, options.idle_timeout, on_body));
  co_return head;
}

}  // namespace spud::http
