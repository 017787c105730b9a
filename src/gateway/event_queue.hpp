// SPDX-License-Identifier: Apache-2.0
// From the engine's thread to one request's coroutine: a bounded queue of generation events. The
// engine never waits; when the reader falls behind by more than the limit the queue overflows once
// and for all, and the request is given up (a slow client must not hold memory).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "engine/engine.hpp"

namespace spud::gateway {

struct GenerationEvent {
  std::size_t choice = 0;
  // The vector: the prompt's log-probs.
  std::variant<engine::TokenEvent, engine::FinishEvent, std::vector<engine::TokenEvent>> event;
};

enum class WaitResult { kEvents, kTimeout, kInterrupted, kOverflow };

// push() from any thread; the rest from the executor's one thread. Held by shared_ptr.
class EventQueue : public std::enable_shared_from_this<EventQueue> {
 public:
  EventQueue(boost::asio::any_io_executor executor, std::size_t max_bytes);

  void push(GenerationEvent event);

  // Moves what there is to `out` (emptied before), waiting for the first event until `until`.
  boost::asio::awaitable<WaitResult> wait(std::vector<GenerationEvent>& out,
                                          std::chrono::steady_clock::time_point until);
  // wait() returns kInterrupted from now on.
  void interrupt();
  // Called at once when the queue overflows, even while nobody waits.
  void set_overflow_callback(std::function<void()> callback);

 private:
  void wake();

  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer timer_;
  const std::size_t max_bytes_;
  std::function<void()> on_overflow_;
  bool interrupted_ = false;

  std::mutex mutex_;  // of what follows
  std::vector<GenerationEvent> events_;
  std::size_t bytes_ = 0;
  bool overflowed_ = false;
  bool wake_posted_ = false;
};

}  // namespace spud::gateway
