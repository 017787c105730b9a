// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server that survives its clients: every read and write has a deadline, every buffer a
// limit, every connection a place in one group. One server belongs to the one thread that runs its
// executor (state has one owner; more threads = more servers on one port). TLS is left to a proxy.
//
// Limits, and what a client sees: header bytes 431, body bytes 413, all bodies together 503, too
// many connections 503, header or body too slow 408, response read too slowly: closed. Before a
// connection is refused, the one that has been idle longest gives up its place.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "http/exchange.hpp"

namespace spud::http {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0 = any free one, see Server::port()
  std::size_t max_connections = 4096;
  std::size_t max_header_bytes = 64u << 10;
  std::size_t max_body_bytes = 8u << 20;
  // Bodies being received or answered, all connections together.
  std::size_t max_total_body_bytes = 256u << 20;
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte to the last header
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{75'000};   // between requests
  std::chrono::milliseconds write_timeout{30'000};  // one piece (64 KiB at most) of an answer
  std::string server_name = "spud";
  // Told after each connection that comes or goes, for a gauge.
  std::function<void(std::size_t num_connections)> on_connections;
  // The JSON body of an error the server itself answers (400, 408, 413, ...).
  std::function<std::string(int status, std::string_view message)> error_body;
};

// Server thread only, except where said.
class Server {
 public:
  // Binds and listens at once, so that an occupied port is an error here and not later.
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(boost::asio::any_io_executor executor,
                                                              ServerOptions options,
                                                              Handler handler);
  ~Server();

  std::uint16_t port() const noexcept;
  std::size_t num_connections() const noexcept;

  // Starts accepting; call once.
  void start();
  // Takes no new connections, closes idle ones, and closes the others after their answer.
  void stop_accepting();
  // Breaks all connections off.
  void cancel_all();
  // Returns when the last connection is gone.
  boost::asio::awaitable<void> wait_closed();

  struct Impl;

 private:
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace spud::http
