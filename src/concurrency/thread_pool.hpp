// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads for data-parallel loops. Built for very short loops (tens of
// microseconds, hundreds per step): workers spin briefly for the next loop, then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace spud::concurrency {

// Non-owning reference to a callable; valid during the call it is passed to.
template <typename Signature>
class FunctionRef;
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
  FunctionRef(F&& f) noexcept  // NOLINT(google-explicit-constructor): that is its use
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(static_cast<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, static_cast<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// Thread-compatible: one loop at a time, from one thread.
class ThreadPool {
 public:
  // num_threads >= 1, the caller included (1 = no worker threads).
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const noexcept;

  // Calls body(begin, end) for pieces that cover [0, count) once, each a multiple of `grain` except
  // the last; pieces are handed out dynamically. Returns when all are done. The body must not
  // throw.
  void parallel_for(std::int64_t count, std::int64_t grain,
                    FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

  // For loops that wait for memory: each thread has a contiguous share of [0, count), the same each
  // time, and calls body(begin, end) for pieces of it from front to back, multiples of `grain`;
  // when it is done it takes from the back of what others have left. `first` runs before any body,
  // on the calling thread; a thread that waits for it calls meanwhile(begin, end, first_done) for
  // its share: it may fetch ahead, and returns soon after first_done is true. None may throw or use
  // the pool. Fewer than 2^32 pieces.
  using Meanwhile =
      FunctionRef<void(std::int64_t begin, std::int64_t end, const std::atomic<bool>& first_done)>;
  void parallel_shares(std::int64_t count, std::int64_t grain, FunctionRef<void()> first,
                       Meanwhile meanwhile,
                       FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spud::concurrency
