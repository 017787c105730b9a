// SPDX-License-Identifier: Apache-2.0
// A queue with a limit between threads. Nothing waits to push: a full queue is the caller's answer
// ("try again later", 429), not a hidden buffer. Many producers, many consumers, a mutex and a
// condition variable: it carries requests and events (thousands a second), not loop iterations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "concurrency/clock.hpp"

namespace spud::concurrency {

// Thread-safe.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // False when full or closed; `item` is then left as it was.
  [[nodiscard]] bool try_push(T&& item) {
    {
      const std::scoped_lock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    not_empty_.notify_one();
    return true;
  }

  // The oldest item, if there is one now.
  std::optional<T> try_pop() {
    const std::scoped_lock lock(mutex_);
    return take_front();
  }

  // Waits for an item. Nothing when `deadline` passed, or when closed and empty: what was pushed
  // before close() is still handed out. Deadlines are of the real clock: the wait is a real one.
  std::optional<T> pop_until(SteadyTime deadline) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_until(lock, deadline, [this] { return closed_ || !items_.empty(); });
    return take_front();
  }

  // No more pushes; everyone who waits wakes up. May be called twice.
  void close() {
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
  }

  bool closed() const {
    const std::scoped_lock lock(mutex_);
    return closed_;
  }
  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return items_.size();
  }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::optional<T> take_front() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_empty_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace spud::concurrency
