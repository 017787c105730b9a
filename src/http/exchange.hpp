// SPDX-License-Identifier: Apache-2.0
// One request and its answer, as a handler sees them. The answer is either one respond(), or a
// stream: begin_stream(), write()..., finish_stream(). A handler runs as a coroutine on the
// server's thread, must not block it, and may be told when the client goes away.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "http/message.hpp"

namespace spud::http {

// Server thread only.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const noexcept = 0;
  // Takes the body out, so that a large one does not live as long as its answer.
  virtual std::string take_body() = 0;

  // Errors of the four below: kCancelled (the client is gone), kDeadlineExceeded (it reads too
  // slowly). Either way the connection is closed afterwards and the handler should just return.
  [[nodiscard]] virtual boost::asio::awaitable<Result<void>> respond(Response response) = 0;
  // Sends `head` (its body is ignored); held back until the first write, to save a packet.
  [[nodiscard]] virtual boost::asio::awaitable<Result<void>> begin_stream(Response head) = 0;
  [[nodiscard]] virtual boost::asio::awaitable<Result<void>> write(std::string bytes) = 0;
  [[nodiscard]] virtual boost::asio::awaitable<Result<void>> finish_stream() = 0;

  // True once a status line went out: the status can no longer change.
  virtual bool started() const noexcept = 0;
  virtual int status() const noexcept = 0;  // of what was sent, 0 before

  // From now on watches the read side; calls `on_gone` once, on the server's thread, when the
  // client closes its side or the connection breaks. The watch ends with the handler.
  virtual void watch_client(std::function<void()> on_gone) = 0;
  virtual bool client_gone() const noexcept = 0;
  // Breaks the connection off now: what is being written fails.
  virtual void abort() noexcept = 0;
  // The connection closes after this answer.
  virtual void close_after() noexcept = 0;

  virtual boost::asio::any_io_executor executor() = 0;
};

using Handler = std::function<boost::asio::awaitable<void>(Exchange&)>;

}  // namespace spud::http
