// SPDX-License-Identifier: Apache-2.0
#include "http/server.hpp"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>

#include "http/internal/connection.hpp"
#include "http/task_group.hpp"
#include "telemetry/log.hpp"

namespace spud::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using internal::Connection;

namespace {

// Out of file descriptors: wait for connections to end instead of spinning on accept.
constexpr std::chrono::milliseconds kAcceptPause{50};

// The open ones, to stop them all.
struct Connections {
  std::set<Connection*> open;
  std::function<void(std::size_t)> on_change;

  void add(Connection* connection) {
    open.insert(connection);
    if (on_change) on_change(open.size());
  }
  void remove(Connection* connection) {
    open.erase(connection);
    if (on_change) on_change(open.size());
  }
};

// Parameters by value: the coroutine owns its connection.
asio::awaitable<void> serve(std::shared_ptr<Connection> connection, Connections* connections) {
  struct Leave {
    Connection* connection;
    Connections* connections;
    ~Leave() {
      connection->close();  // also ends a pending watch, which holds the connection
      connections->remove(connection);
    }
  };
  const Leave leave{connection.get(), connections};
  connections->add(connection.get());
  co_await connection->run();
}

}  // namespace

struct Server::Impl {
  Impl(asio::any_io_executor e, tcp::acceptor a)
      : executor(e), acceptor(std::move(a)), accepting(e), tasks(e) {}

  asio::awaitable<void> accept_loop();
  bool make_room() noexcept;
  void refuse(tcp::socket socket) const;

  asio::any_io_executor executor;
  tcp::acceptor acceptor;
  std::uint16_t port = 0;
  internal::ServerState state;
  Connections connections;
  TaskGroup accepting;
  TaskGroup tasks;  // the connections
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(asio::any_io_executor executor,
                                               ServerOptions options, Handler handler) {
  error_code error;
  tcp::resolver resolver(executor);
  const auto found =
      resolver.resolve(options.host, fmt::format("{}", options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return fail(ErrorCode::kInvalidArgument, "cannot listen on host '{}': {}", options.host,
                error ? error.message() : "no address");
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return fail(ErrorCode::kUnavailable, "cannot listen on {}:{}: {}", options.host, options.port,
                error.message());
  }
  auto impl = std::make_unique<Impl>(executor, std::move(acceptor));
  impl->port = impl->acceptor.local_endpoint(error).port();
  impl->connections.on_change = options.on_connections;
  impl->state.options = std::move(options);
  impl->state.handler = std::move(handler);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const noexcept { return impl_->port; }
std::size_t Server::num_connections() const noexcept { return impl_->tasks.size(); }

void Server::start() { impl_->accepting.spawn(impl_->accept_loop()); }

void Server::stop_accepting() {
  impl_->state.stopping = true;
  error_code ignored;
  impl_->acceptor.close(ignored);
  impl_->tasks.close();
  for (Connection* connection : impl_->connections.open) connection->stop();
}

void Server::cancel_all() { impl_->tasks.cancel(); }

asio::awaitable<void> Server::wait_closed() {
  co_await impl_->accepting.wait();
  co_await impl_->tasks.wait();
}

asio::awaitable<void> Server::Impl::accept_loop() {
  asio::steady_timer pause(executor);
  while (acceptor.is_open()) {
    error_code error;
    tcp::socket socket(executor);
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted || !acceptor.is_open()) break;
    if (error) {
      SPUD_LOG(warn, "cannot accept a connection", {"why", error.message()});
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (tasks.size() >= state.options.max_connections && !make_room()) {
      SPUD_LOG(warn, "connection refused: too many", {"limit", state.options.max_connections});
      refuse(std::move(socket));
      continue;
    }
    auto connection = std::make_shared<Connection>(std::move(socket), state);
    tasks.spawn(serve(std::move(connection), &connections));
  }
}

// A client that asks goes before one that only holds a place.
bool Server::Impl::make_room() noexcept {
  const auto silent =
      std::ranges::find_if(state.idle, [](Connection* c) { return !c->has_input(); });
  if (silent == state.idle.end()) return false;
  (*silent)->give_up_place();
  return true;
}

// One try to say why, without waiting: a full house must cost nothing.
void Server::Impl::refuse(tcp::socket socket) const {
  const std::string_view message = "too many connections; try again later";
  const std::string body = state.error_body(503, message);
  const std::string text = fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      body.size(), body);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

}  // namespace spud::http
