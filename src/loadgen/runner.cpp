// SPDX-License-Identifier: Apache-2.0
#include "loadgen/runner.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>

#include "http/task_group.hpp"
#include "loadgen/stream_reader.hpp"

namespace spud::loadgen {
namespace asio = boost::asio;

namespace {

using SteadyClock = std::chrono::steady_clock;  // the timers' own

constexpr std::size_t kMaxMessageBytes = 500;
constexpr std::chrono::milliseconds kProgressEvery{250};

OutcomeKind kind_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUnavailable:
      return OutcomeKind::kConnect;
    case ErrorCode::kDeadlineExceeded:
      return OutcomeKind::kTimeout;
    case ErrorCode::kCancelled:
      return OutcomeKind::kUnfinished;
    default:
      return OutcomeKind::kBroken;
  }
}

class Runner {
 public:
  Runner(const std::vector<TenantOptions>& tenants, const Plan& plan, const PromptMaker& prompts,
         const http::Url& url, const RunOptions& options)
      : tenants_(tenants),
        plan_(plan),
        prompts_(prompts),
        url_(url),
        options_(options),
        senders_(io_.get_executor()),
        requests_(io_.get_executor()),
        helpers_(io_.get_executor()),
        next_closed_(tenants.size(), 0) {}

  RunResult run();

 private:
  asio::awaitable<void> supervise();
  asio::awaitable<void> send_open();
  asio::awaitable<void> run_client(std::size_t tenant);
  asio::awaitable<void> send(const Planned* planned, Outcome* outcome);
  asio::awaitable<void> report_progress();
  asio::awaitable<void> end_on_interrupt();
  asio::awaitable<void> end_after(Nanoseconds time);
  void note_failure(const Outcome& outcome, std::string message);
  Nanoseconds now() const { return SteadyClock::now() - started_; }
  http::ClientRequest make_request(const Planned& planned) const;

  const std::vector<TenantOptions>& tenants_;
  const Plan& plan_;
  const PromptMaker& prompts_;
  const http::Url& url_;
  const RunOptions& options_;

  asio::io_context io_{1};
  http::TaskGroup senders_;   // one for all open tenants, one for each client of a closed one
  http::TaskGroup requests_;  // of open tenants; closed clients await their own
  http::TaskGroup helpers_;
  SteadyClock::time_point started_;
  std::vector<std::size_t> next_closed_;
  std::size_t in_flight_ = 0;
  std::size_t finished_ = 0;
  RunResult result_;
};

RunResult Runner::run() {
  started_ = SteadyClock::now();
  http::TaskGroup supervisor(io_.get_executor());
  supervisor.spawn(supervise());
  io_.run();
  return std::move(result_);
}

asio::awaitable<void> Runner::supervise() {
  if (options_.on_progress) helpers_.spawn(report_progress());
  if (options_.handle_interrupt) helpers_.spawn(end_on_interrupt());
  if (!plan_.open.empty()) senders_.spawn(send_open());
  bool any_closed = false;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (tenants_[i].arrivals != ArrivalKind::kClosed) continue;
    any_closed = true;
    for (std::int64_t client = 0; client < tenants_[i].clients; ++client) {
      senders_.spawn(run_client(i));
    }
  }
  // A closed client sends and waits in one task: its last answer gets the same time to end.
  if (any_closed) helpers_.spawn(end_after(options_.duration + options_.drain));
  co_await senders_.wait();
  helpers_.spawn(end_after(now() + options_.drain));
  co_await requests_.wait();
  result_.wall = now();
  helpers_.close();
  helpers_.cancel();
  co_await helpers_.wait();
}

asio::awaitable<void> Runner::end_after(Nanoseconds time) {
  asio::steady_timer timer(io_, started_ + time);
  boost::system::error_code error;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  senders_.cancel();
  requests_.cancel();
}

asio::awaitable<void> Runner::end_on_interrupt() {
  asio::signal_set signals(io_, SIGINT);
  boost::system::error_code error;
  co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  result_.interrupted = true;
  senders_.close();
  senders_.cancel();
  requests_.close();
  requests_.cancel();
}

asio::awaitable<void> Runner::report_progress() {
  asio::steady_timer timer(io_);
  boost::system::error_code error;
  while (!error) {
    options_.on_progress({.sent = result_.outcomes.size(),
                          .finished = finished_,
                          .in_flight = in_flight_,
                          .planned = plan_.open.size()});
    timer.expires_after(kProgressEvery);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

asio::awaitable<void> Runner::send_open() {
  asio::steady_timer timer(io_);
  for (const Planned& planned : plan_.open) {
    if (planned.at > now()) {
      timer.expires_at(started_ + planned.at);
      boost::system::error_code error;
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
    }
    Outcome& outcome = result_.outcomes.emplace_back();
    outcome.tenant = planned.tenant;
    outcome.scheduled = planned.at;
    if (in_flight_ >= options_.max_in_flight) {
      outcome.kind = OutcomeKind::kDropped;
      ++finished_;
      continue;
    }
    requests_.spawn(send(&planned, &outcome));
  }
}

asio::awaitable<void> Runner::run_client(std::size_t tenant) {
  const std::vector<Planned>& planned = plan_.closed[tenant];
  const Nanoseconds start = planned.empty() ? Nanoseconds{0} : planned.front().at;
  if (start > now()) {
    asio::steady_timer timer(io_, started_ + start);
    boost::system::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
  }
  std::size_t& next = next_closed_[tenant];
  while (next < planned.size() && now() < options_.duration) {
    const Planned& mine = planned[next++];
    Outcome& outcome = result_.outcomes.emplace_back();
    outcome.tenant = static_cast<std::uint16_t>(tenant);
    outcome.scheduled = now();
    co_await send(&mine, &outcome);
    if (outcome.kind == OutcomeKind::kUnfinished) co_return;  // cancelled
    // A server that refuses at once would be asked again at once, for ever.
    if (outcome.ok()) continue;
    asio::steady_timer pause(io_, std::chrono::milliseconds(100));
    boost::system::error_code error;
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
  }
}

http::ClientRequest Runner::make_request(const Planned& planned) const {
  const TenantOptions& tenant = tenants_[planned.tenant];
  http::ClientRequest request{.method = "POST",
                              .url = url_,
                              .path = std::string(prompts_.path()),
                              .headers = {},
                              .body = prompts_.body(planned, tenant.shared_prefix)};
  if (!tenant.api_key.empty()) request.headers.add("Authorization", "Bearer " + tenant.api_key);
  return request;
}

asio::awaitable<void> Runner::send(const Planned* planned, Outcome* outcome) {
  ++in_flight_;
  StreamReader reader(*outcome);
  std::string refusal;
  auto on_head = [outcome](const http::ResponseHead& head) {
    outcome->http_status = static_cast<std::int16_t>(head.status);
    return true;
  };
  auto on_body = [&, outcome](std::string_view bytes) {
    if (outcome->http_status == 200) return reader.push(bytes, now());
    refusal += bytes.substr(0, kMaxMessageBytes - std::min(kMaxMessageBytes, refusal.size()));
    return refusal.size() < kMaxMessageBytes;
  };
  http::ClientRequest request = make_request(*planned);
  outcome->sent = now();
  const auto fetched = co_await http::fetch(io_.get_executor(), std::move(request), options_.client,
                                            on_head, on_body);
  outcome->ended = now();
  std::string message;
  if (!fetched) {
    outcome->kind = kind_of(fetched.error());
    message = fetched.error().message();
  } else if (outcome->http_status != 200) {
    outcome->kind = OutcomeKind::kHttpStatus;
    message = refusal;
  } else {
    reader.finish(now());
    message = reader.message();
  }
  if (!outcome->ok()) note_failure(*outcome, std::move(message));
  --in_flight_;
  ++finished_;
}

void Runner::note_failure(const Outcome& outcome, std::string message) {
  result_.messages.try_emplace(failure_name(outcome), std::move(message));
}

}  // namespace

const char* to_string(OutcomeKind kind) noexcept {
  switch (kind) {
    case OutcomeKind::kOk:
      return "ok";
    case OutcomeKind::kDropped:
      return "dropped";
    case OutcomeKind::kConnect:
      return "no connection";
    case OutcomeKind::kTimeout:
      return "timeout";
    case OutcomeKind::kHttpStatus:
      return "http status";
    case OutcomeKind::kBroken:
      return "broken stream";
    case OutcomeKind::kServerError:
      return "error event";
    case OutcomeKind::kUnfinished:
      return "unfinished";
  }
  return "unknown";
}

std::string failure_name(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::kHttpStatus) return fmt::format("http {}", outcome.http_status);
  return to_string(outcome.kind);
}

RunResult run_load(const std::vector<TenantOptions>& tenants, const Plan& plan,
                   const PromptMaker& prompts, const http::Url& url, const RunOptions& options) {
  Runner runner(tenants, plan, prompts, url, options);
  return runner.run();
}

}  // namespace spud::loadgen
