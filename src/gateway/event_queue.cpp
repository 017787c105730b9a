// SPDX-License-Identifier: Apache-2.0
#include "gateway/event_queue.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace spud::gateway {
namespace asio = boost::asio;

namespace {

std::size_t size_of(const engine::TokenEvent& event) {
  return sizeof(GenerationEvent) + event.text.size() +
         event.top.size() * sizeof(engine::TokenLogprob);
}

std::size_t size_of(const GenerationEvent& event) {
  if (const auto* token = std::get_if<engine::TokenEvent>(&event.event)) return size_of(*token);
  // The prompt's log-probs come once and are bounded by the context: counted as one event, so that
  // a limit made for streams does not forbid scoring a long prompt.
  return sizeof(GenerationEvent);
}

}  // namespace

EventQueue::EventQueue(asio::any_io_executor executor, std::size_t max_bytes)
    : executor_(executor), timer_(executor), max_bytes_(max_bytes) {}

void EventQueue::push(GenerationEvent event) {
  const std::size_t size = size_of(event);
  {
    const std::lock_guard lock(mutex_);
    if (overflowed_) return;
    bytes_ += size;
    if (bytes_ > max_bytes_) {
      overflowed_ = true;
      events_.clear();
      events_.shrink_to_fit();
    } else {
      events_.push_back(std::move(event));
    }
    if (std::exchange(wake_posted_, true)) return;
  }
  asio::post(executor_, [self = shared_from_this()] { self->wake(); });
}

void EventQueue::wake() {
  bool overflowed = false;
  {
    const std::lock_guard lock(mutex_);
    wake_posted_ = false;
    overflowed = overflowed_;
  }
  timer_.cancel();
  if (!overflowed) return;
  const auto callback = std::exchange(on_overflow_, nullptr);
  if (callback) callback();
}

asio::awaitable<WaitResult> EventQueue::wait(std::vector<GenerationEvent>& out,
                                             std::chrono::steady_clock::time_point until) {
  out.clear();
  while (true) {
    if (interrupted_) co_return WaitResult::kInterrupted;
    {
      const std::lock_guard lock(mutex_);
      if (overflowed_) co_return WaitResult::kOverflow;
      if (!events_.empty()) {
        out.swap(events_);
        bytes_ = 0;
        co_return WaitResult::kEvents;
      }
    }
    if (std::chrono::steady_clock::now() >= until) co_return WaitResult::kTimeout;
    // No wake-up is lost: wake() runs on this thread, so only while we are suspended below.
    timer_.expires_at(until);
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

void EventQueue::interrupt() {
  interrupted_ = true;
  timer_.cancel();
}

void EventQueue::set_overflow_callback(std::function<void()> callback) {
  on_overflow_ = std::move(callback);
}

}  // namespace spud::gateway
