// SPDX-License-Identifier: Apache-2.0
#include "http/internal/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include "telemetry/log.hpp"

namespace spud::http::internal {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadPiece = 8 << 10;
constexpr int kSendBufferBytes = 128 << 10;
// Pipelined bytes kept while an answer is being made; beyond that the kernel's buffer holds them
// back, and a client that leaves is noticed when writing to it fails.
constexpr std::size_t kMaxPipelined = 64 << 10;
// How much and how long unread input is swallowed before closing, so that the client gets to read
// the answer instead of a reset.
constexpr std::size_t kMaxLingerBytes = 64 << 20;
constexpr std::chrono::milliseconds kMaxLinger{2000};

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ServerState& server)
    : socket_(std::move(socket)),
      server_(server),
      buffer_(server.options.max_header_bytes + kMaxPipelined),
      timer_(socket_.get_executor()),
      watch_ended_(socket_.get_executor(), asio::steady_timer::time_point::max()) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  // Left alone the kernel lets it grow to megabytes: a thousand slow readers would hold gigabytes,
  // and would be noticed late.
  socket_.set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), ignored);
  const auto endpoint = socket_.remote_endpoint(ignored);
  if (!ignored) request_.remote_address = endpoint.address().to_string(ignored);
}

Connection::~Connection() {
  leave_idle();
  release_body_bytes();
}

void Connection::close() noexcept {
  disarm();
  error_code ignored;
  socket_.close(ignored);
}

void Connection::stop() noexcept {
  keep_alive_ = false;
  if (idle_place_) close();
}

bool Connection::has_input() const noexcept {
  error_code ignored;
  return socket_.available(ignored) > 0;
}

void Connection::give_up_place() noexcept {
  leave_idle();
  close();
}

void Connection::enter_idle() { idle_place_ = server_.idle.insert(server_.idle.end(), this); }

void Connection::leave_idle() noexcept {
  if (idle_place_) server_.idle.erase(*idle_place_);
  idle_place_.reset();
}

void Connection::arm(std::chrono::milliseconds after, OnTimeout action) {
  timed_out_ = false;
  const std::uint64_t round = ++timer_round_;
  timer_.expires_after(after);
  timer_.async_wait([weak = weak_from_this(), round, action](error_code error) {
    const auto self = weak.lock();
    if (error || self == nullptr || self->timer_round_ != round) return;
    self->timed_out_ = true;
    error_code ignored;
    if (action == OnTimeout::kClose) {
      self->socket_.close(ignored);
    } else {
      self->socket_.cancel(ignored);
    }
  });
}

void Connection::disarm() noexcept {
  ++timer_round_;
  timer_.cancel();
}

asio::awaitable<void> Connection::run() {
  while (true) {
    const bool has_input = co_await wait_for_first_byte();
    if (!has_input) break;
    const bool has_request = co_await read_request();
    if (!has_request) break;
    co_await run_handler();
    release_body_bytes();
    if (!keep_alive_ || server_.stopping || gone_ || !socket_.is_open()) break;
    if (buffer_.size() == 0) buffer_.shrink_to_fit();  // an idle connection costs little
  }
  release_body_bytes();  // a refused body must not count while we wait for its sender to leave
  if (socket_.is_open() && !gone_) co_await linger();
  close();
}

// Waits without a buffer, so that an idle connection holds none.
asio::awaitable<bool> Connection::wait_for_first_byte() {
  if (buffer_.size() > 0) co_return true;
  arm(server_.options.idle_timeout, OnTimeout::kClose);
  enter_idle();
  error_code error;
  co_await socket_.async_wait(asio::ip::tcp::socket::wait_read,
                              asio::redirect_error(asio::use_awaitable, error));
  leave_idle();
  disarm();
  if (error || !socket_.is_open()) gone_ = true;
  co_return !gone_;
}

asio::awaitable<bool> Connection::read_request() {
  const ServerOptions& options = server_.options;
  std::string remote = std::move(request_.remote_address);
  request_ = Request{.remote_address = std::move(remote)};
  status_ = 0;
  streaming_ = false;
  on_gone_ = nullptr;

  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(options.max_header_bytes));
  parser.body_limit(options.max_body_bytes);
  arm(options.header_timeout, OnTimeout::kCancelRead);
  error_code error;
  co_await beast_http::async_read_header(socket_, buffer_, parser,
                                         asio::redirect_error(asio::use_awaitable, error));
  disarm();
  if (error) {
    co_await answer_failed_read(error);
    co_return false;
  }
  const std::string complaint = check_head(parser);
  if (!complaint.empty()) {
    co_await answer_error(400, complaint);
    co_return false;
  }
  const auto expect = request_.headers.find("Expect");
  if (expect && !http_1_0_) {
    if (!equal_ignoring_case(*expect, "100-continue")) {
      co_await answer_error(417, fmt::format("cannot meet the expectation '{}'", *expect));
      co_return false;
    }
    const Result<void> sent = co_await send_piece("HTTP/1.1 100 Continue\r\n\r\n");
    if (!sent) co_return false;
  }
  const bool has_body = co_await read_body(parser);
  if (!has_body) co_return false;
  keep_alive_ = keep_alive_ && parser.keep_alive();
  co_return true;
}

// Fills in request_; returns what is wrong with it, "" when nothing is.
std::string Connection::check_head(const Parser& parser) {
  const auto& message = parser.get();
  http_1_0_ = message.version() == 10;
  request_.method = std::string(message.method_string());
  std::optional<Target> target = parse_target(std::string_view(message.target()));
  if (!target && !(request_.method == "OPTIONS" && message.target() == "*")) {
    return "the request target is not a path";
  }
  request_.path = target ? std::move(target->path) : "*";
  request_.query = target ? std::move(target->query) : "";
  std::size_t num_hosts = 0;
  for (const auto& field : message) {
    request_.headers.add(field.name_string(), field.value());
    if (field.name() == beast_http::field::host) ++num_hosts;
  }
  if (num_hosts > 1 || (num_hosts == 0 && !http_1_0_)) {
    return "an HTTP/1.1 request must have exactly one Host header";
  }
  return "";
}

asio::awaitable<bool> Connection::read_body(Parser& parser) {
  if (parser.is_done()) co_return true;
  arm(server_.options.body_timeout, OnTimeout::kCancelRead);
  std::array<char, kReadPiece> piece;
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    error_code error;
    co_await beast_http::async_read_some(socket_, buffer_, parser,
                                         asio::redirect_error(asio::use_awaitable, error));
    if (error == beast_http::error::need_buffer) error = {};
    if (error) {
      disarm();
      co_await answer_failed_read(error);
      co_return false;
    }
    const std::size_t received = piece.size() - body.size;
    if (!reserve_body_bytes(received)) {
      disarm();
      co_await answer_error(503, "too many request bytes are in flight; try again later");
      co_return false;
    }
    request_.body.append(piece.data(), received);
  }
  disarm();
  co_return true;
}

asio::awaitable<void> Connection::answer_failed_read(error_code error) {
  const ServerOptions& options = server_.options;
  if (timed_out_) {
    co_await answer_error(408, "the request took too long to arrive");
  } else if (error == beast_http::error::end_of_stream ||
             error == beast_http::error::partial_message || error == asio::error::eof) {
    gone_ = true;
  } else if (error == beast_http::error::header_limit ||
             error == beast_http::error::buffer_overflow) {
    co_await answer_error(
        431, fmt::format("the request's headers exceed {} bytes", options.max_header_bytes));
  } else if (error == beast_http::error::body_limit) {
    co_await answer_error(
        413, fmt::format("the request's body exceeds {} bytes", options.max_body_bytes));
  } else if (error.category() ==
             beast_http::make_error_code(beast_http::error::bad_method).category()) {
    co_await answer_error(400, fmt::format("malformed HTTP request: {}", error.message()));
  } else {
    gone_ = true;
  }
}

asio::awaitable<void> Connection::answer_error(int status, std::string message) {
  keep_alive_ = false;
  Response response{.status = status};
  if (status == 503) response.headers.add("Retry-After", "1");
  response.body =
      server_.options.error_body ? server_.options.error_body(status, message) : message + "\n";
  const Result<void> ignored = co_await respond(std::move(response));
  static_cast<void>(ignored);
}

asio::awaitable<void> Connection::run_handler() {
  bool failed = false;
  try {
    co_await server_.handler(*this);
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) throw;  // the server cancels us
    failed = true;
    SPUD_LOG(error, "request handler threw", {"path", request_.path}, {"what", error.what()});
  } catch (const std::exception& error) {
    failed = true;
    SPUD_LOG(error, "request handler threw", {"path", request_.path}, {"what", error.what()});
  }
  on_gone_ = nullptr;
  co_await stop_watch();
  if (!started() && !gone_) {
    if (!failed) SPUD_LOG(error, "request handler gave no answer", {"path", request_.path});
    co_await answer_error(500, "internal error");
  } else if (failed || streaming_) {
    // A stream that was not finished must not look complete: no last chunk, just the end.
    keep_alive_ = false;
  }
}

asio::awaitable<void> Connection::linger() {
  error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) co_return;
  arm(kMaxLinger, OnTimeout::kClose);
  std::array<char, kReadPiece> sink;
  std::size_t swallowed = 0;
  while (swallowed < kMaxLingerBytes) {
    swallowed += co_await socket_.async_read_some(asio::buffer(sink),
                                                  asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
  }
  disarm();
}

void Connection::watch_client(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  stop_watching_ = false;
  if (gone_) {
    notice_gone();
  } else if (!watching_) {
    watch_more();
  }
}

void Connection::watch_more() {
  if (buffer_.size() >= kMaxPipelined) return;
  watching_ = true;
  socket_.async_read_some(buffer_.prepare(1024),
                          [self = shared_from_this()](error_code error, std::size_t size) {
                            self->watching_ = false;
                            self->buffer_.commit(size);
                            if (self->stop_watching_) {
                              if (error && error != asio::error::operation_aborted)
                                self->gone_ = true;
                              self->watch_ended_.cancel();
                            } else if (error) {
                              self->notice_gone();
                            } else {
                              self->watch_more();
                            }
                          });
}

void Connection::notice_gone() {
  gone_ = true;
  const auto on_gone = std::exchange(on_gone_, nullptr);
  if (on_gone) on_gone();
}

asio::awaitable<void> Connection::stop_watch() {
  if (!watching_) co_return;
  stop_watching_ = true;
  error_code ignored;
  socket_.cancel(ignored);
  while (watching_) {
    co_await watch_ended_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

bool Connection::reserve_body_bytes(std::size_t count) noexcept {
  if (count > server_.options.max_total_body_bytes - server_.body_bytes_in_use) return false;
  server_.body_bytes_in_use += count;
  reserved_body_bytes_ += count;
  return true;
}

void Connection::release_body_bytes() noexcept {
  server_.body_bytes_in_use -= std::exchange(reserved_body_bytes_, 0);
}

}  // namespace spud::http::internal
