// SPDX-License-Identifier: Apache-2.0
// Structured concurrency for coroutines: every one that is started is in a group, and a group can
// refuse new ones, cancel all, and wait until none is left. Nothing else in spud starts a coroutine
// that nobody waits for.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <list>

namespace spud::http {

// For the one thread that runs its executor. Must outlive its tasks: co_await wait() before the
// end.
class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // False (and the task never starts) once closed. An exception that leaves a task is logged.
  bool spawn(boost::asio::awaitable<void> task);
  void close() noexcept { closed_ = true; }
  // The operation each task waits in ends with operation_aborted.
  void cancel();
  std::size_t size() const noexcept { return signals_.size(); }
  // Returns when no task is left.
  boost::asio::awaitable<void> wait();

 private:
  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer empty_;  // never expires; cancelled to wake wait()
  std::list<boost::asio::cancellation_signal> signals_;
  bool closed_ = false;
};

}  // namespace spud::http
