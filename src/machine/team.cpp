// SPDX-License-Identifier: Apache-2.0
#include "machine/team.hpp"

#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spud::machine {
namespace {

// A few microseconds: the longest a member should be late when every one has a core.
constexpr int kSpins = 4000;

inline void relax(int spins) noexcept {
  if (spins >= kSpins) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

void SpinBarrier::arrive_and_wait() noexcept {
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) relax(spins);
}

void run_team(const TimedRounds& rounds, const concurrency::Clock& clock, MemberWork prepare,
              MemberWork work,
              concurrency::FunctionRef<void(int round, std::chrono::nanoseconds)> on_round) {
  SpinBarrier barrier(rounds.threads);
  bool go_on = true;  // written by member 0 between two barriers, read by the others after them
  const auto run_member = [&](int member) {
    prepare(member, 0);
    barrier.arrive_and_wait();
    const auto started = clock.now();
    for (int round = 0; go_on; ++round) {
      const auto begin = clock.now();
      work(member, round);
      barrier.arrive_and_wait();
      if (member == 0) {
        const auto end = clock.now();
        on_round(round, end - begin);
        go_on = round + 1 < rounds.min_rounds || end - started < rounds.time_limit;
      }
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::jthread> others;
  others.reserve(static_cast<std::size_t>(rounds.threads) - 1);
  for (int member = 1; member < rounds.threads; ++member) others.emplace_back(run_member, member);
  run_member(0);
}

}  // namespace spud::machine
