// SPDX-License-Identifier: Apache-2.0
#include "http/task_group.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>

#include "base/check.hpp"
#include "telemetry/log.hpp"

namespace spud::http {
namespace asio = boost::asio;

TaskGroup::TaskGroup(asio::any_io_executor executor)
    : executor_(executor), empty_(executor, asio::steady_timer::time_point::max()) {}

TaskGroup::~TaskGroup() = default;

bool TaskGroup::spawn(asio::awaitable<void> task) {
  if (closed_) return false;
  signals_.emplace_back();
  const auto signal = std::prev(signals_.end());
  auto on_end = [this, signal](std::exception_ptr failure) {
    signals_.erase(signal);
    if (signals_.empty()) empty_.cancel();
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::operation_aborted) return;  // cancelled: expected
      SPUD_LOG(error, "task ended by exception", {"what", error.what()});
    } catch (const std::exception& error) {
      SPUD_LOG(error, "task ended by exception", {"what", error.what()});
    }
  };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(signal->slot(), std::move(on_end)));
  return true;
}

void TaskGroup::cancel() {
  // A task may end inside emit(), and with it its list node: step before emitting.
  for (auto it = signals_.begin(); it != signals_.end();) {
    asio::cancellation_signal& signal = *it++;
    signal.emit(asio::cancellation_type::terminal);
  }
}

asio::awaitable<void> TaskGroup::wait() {
  while (!signals_.empty()) {
    boost::system::error_code ignored;
    co_await empty_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace spud::http
