// SPDX-License-Identifier: Apache-2.0
// One connection: reads requests one after the other, runs the handler, writes answers. A single
// timer guards whatever is being waited for; what happens when it fires depends on the wait: close
// (idle, slow reader) or cancel the read, so that a 408 can still be written (slow sender).
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <list>
#include <optional>

#include "http/server.hpp"

namespace spud::http::internal {

class Connection;

// What connections share with their server.
struct ServerState {
  ServerOptions options;
  Handler handler;
  bool stopping = false;
  std::size_t body_bytes_in_use = 0;
  std::list<Connection*> idle;  // between requests, longest first

  std::string error_body(int status, std::string_view message) const {
    if (options.error_body) return options.error_body(status, message);
    std::string text(message);
    text += '\n';
    return text;
  }
};

// Server thread only. Held by shared_ptr: timer and watch callbacks may outlive the coroutine.
class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ServerState& server);
  ~Connection() override;

  boost::asio::awaitable<void> run();
  void close() noexcept;
  // Closes at once when between requests, else after the current answer.
  void stop() noexcept;
  // Whether bytes wait to be read; of an idle one: its request is here, only not looked at yet.
  bool has_input() const noexcept;
  // For the server that needs the place: only while on its idle list, which this leaves.
  void give_up_place() noexcept;

  const Request& request() const noexcept override { return request_; }
  std::string take_body() override { return std::move(request_.body); }
  boost::asio::awaitable<Result<void>> respond(Response response) override;
  boost::asio::awaitable<Result<void>> begin_stream(Response head) override;
  boost::asio::awaitable<Result<void>> write(std::string bytes) override;
  boost::asio::awaitable<Result<void>> finish_stream() override;
  bool started() const noexcept override { return status_ != 0; }
  int status() const noexcept override { return status_; }
  void watch_client(std::function<void()> on_gone) override;
  bool client_gone() const noexcept override { return gone_; }
  void abort() noexcept override {
    gone_ = true;
    close();
  }
  void close_after() noexcept override { keep_alive_ = false; }
  boost::asio::any_io_executor executor() override { return socket_.get_executor(); }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
  enum class OnTimeout { kClose, kCancelRead };

  void arm(std::chrono::milliseconds after, OnTimeout action);
  void disarm() noexcept;

  boost::asio::awaitable<bool> wait_for_first_byte();
  void enter_idle();
  void leave_idle() noexcept;
  boost::asio::awaitable<bool> read_request();
  boost::asio::awaitable<bool> read_body(Parser& parser);
  boost::asio::awaitable<void> run_handler();
  boost::asio::awaitable<void> answer_failed_read(boost::system::error_code error);
  boost::asio::awaitable<void> answer_error(int status, std::string message);
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<Result<void>> send(std::string head, std::string_view body);
  boost::asio::awaitable<Result<void>> send_piece(std::string_view bytes);
  boost::asio::awaitable<void> stop_watch();
  std::string check_head(const Parser& parser);
  std::string make_head(const Response& response, std::optional<std::size_t> content_length);
  bool reserve_body_bytes(std::size_t count) noexcept;
  void release_body_bytes() noexcept;
  void watch_more();
  void notice_gone();

  boost::asio::ip::tcp::socket socket_;
  ServerState& server_;
  boost::beast::flat_buffer buffer_;  // received and not yet parsed

  boost::asio::steady_timer timer_;
  std::uint64_t timer_round_ = 0;  // a fired timer of an earlier round is stale
  bool timed_out_ = false;

  std::optional<std::list<Connection*>::iterator> idle_place_;  // in the server's list
  Request request_;
  std::size_t reserved_body_bytes_ = 0;
  bool http_1_0_ = false;
  bool keep_alive_ = true;

  int status_ = 0;
  bool streaming_ = false;
  std::string held_head_;  // of a stream, until its first write

  std::function<void()> on_gone_;
  boost::asio::steady_timer watch_ended_;  // never expires; cancelled when the watch read ends
  bool watching_ = false;
  bool stop_watching_ = false;
  bool gone_ = false;
};

}  // namespace spud::http::internal
