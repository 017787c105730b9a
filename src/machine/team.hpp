// SPDX-License-Identifier: Apache-2.0
// Threads that start a piece of work together and are timed together: what a bandwidth or a peak of
// "all cores" needs. A ThreadPool hands pieces out to whoever comes first, so it can not tell.
#pragma once

#include <atomic>
#include <chrono>

#include "concurrency/clock.hpp"
#include "concurrency/thread_pool.hpp"

namespace spud::machine {

// All threads wait until the last one comes. Spins, and gives the CPU away when that takes long.
// Thread-safe.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  void arrive_and_wait() noexcept;

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  // The last arrival's release of the next round pairs with the acquire of those who wait.
  alignas(64) std::atomic<std::uint32_t> round_{0};
};

// What one member does in one round.
using MemberWork = concurrency::FunctionRef<void(int member, int round)>;

struct TimedRounds {
  int threads = 1;
  int min_rounds = 3;
  std::chrono::nanoseconds time_limit{0};  // no new round after it
};

// Runs `prepare(member, 0)` on every thread, then rounds of `work` by all threads at once; after
// each, `on_round(round, duration)` on the calling thread, which is member 0.
void run_team(const TimedRounds& rounds, const concurrency::Clock& clock, MemberWork prepare,
              MemberWork work,
              concurrency::FunctionRef<void(int round, std::chrono::nanoseconds)> on_round);

}  // namespace spud::machine
