// SPDX-License-Identifier: Apache-2.0
#include "concurrency/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "base/check.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spud::concurrency {
namespace {

// About 50 us of pauses (20-40 ns each on today's x86): longer than the serial parts between the
// loops of one forward pass, short against a person's patience with an idle machine.
constexpr int kSpins = 2000;

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// The word all threads meet at: [ epoch : 16 | open : 1 | active : 15 ].
//
//   caller:  writes the loop's fields, then stores {epoch + 1, open, 0}      (release)
//   worker:  sees a new open epoch, adds 1 by compare-exchange               (acquire)
//            works, subtracts 1                                              (release)
//   caller:  works, clears `open`, waits until active is 0                   (acquire)
//
// A worker that comes late finds the loop closed and joins the next one: a loop never waits for a
// thread that the operating system has not let run yet. After 65536 loops a sleeping worker could
// take a new epoch for its old one; it then misses that one loop, which the others do.
constexpr std::uint32_t kOpen = 1U << 15;
constexpr std::uint32_t kActive = kOpen - 1;
constexpr std::uint32_t kEpochShift = 16;

constexpr std::uint32_t epoch_of(std::uint32_t word) noexcept { return word >> kEpochShift; }

// What is left of a thread's share of a loop, in pieces of its grain. The owner takes from the
// front, so that it reads one contiguous stream; whoever is done helps from the back.
class alignas(64) Share {
 public:
  struct Pieces {
    std::uint32_t begin;
    std::uint32_t end;
    bool empty() const { return begin == end; }
  };

  void set(Pieces all) { left_.store(pack(all), std::memory_order_relaxed); }

  // Half of what is left: few trips here, and a last piece that is small. Empty when none is left.
  Pieces take_front() {
    return take([](Pieces left, std::uint32_t half) -> Split {
      return {{left.begin, left.begin + half}, {left.begin + half, left.end}};
    });
  }
  Pieces take_back() {
    return take([](Pieces left, std::uint32_t half) -> Split {
      return {{left.end - half, left.end}, {left.begin, left.end - half}};
    });
  }

 private:
  struct Split {
    Pieces taken;
    Pieces left;
  };

  static std::uint64_t pack(Pieces pieces) {
    return std::uint64_t{pieces.begin} << 32 | pieces.end;
  }

  template <typename SplitFunction>
  Pieces take(SplitFunction split) {
    std::uint64_t word = left_.load(std::memory_order_relaxed);
    while (true) {
      const Pieces left{static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
      if (left.empty()) return left;
      const Split parts = split(left, (left.end - left.begin + 1) / 2);
      if (left_.compare_exchange_weak(word, pack(parts.left), std::memory_order_relaxed)) {
        return parts.taken;
      }
    }
  }

  std::atomic<std::uint64_t> left_{0};
};

}  // namespace

struct ThreadPool::State {
  int num_threads = 1;

  alignas(64) std::atomic<std::uint32_t> word{0};
  std::atomic<bool> stopping{false};

  // The loop; written only while it is closed and nobody is active.
  alignas(64) FunctionRef<void(std::int64_t, std::int64_t)>* body = nullptr;
  std::int64_t count = 0;
  std::int64_t grain = 1;

  alignas(64) std::atomic<std::int64_t> next{0};

  // Of parallel_shares; `meanwhile` is null in other loops.
  Meanwhile* meanwhile = nullptr;
  alignas(64) std::atomic<bool> first_done{false};
  std::unique_ptr<Share[]> shares;  // by thread

  std::vector<std::thread> workers;  // last: they use all of the above

  Share::Pieces share_of(int thread) const {
    const std::int64_t pieces = (count + grain - 1) / grain;
    return {static_cast<std::uint32_t>(pieces * thread / num_threads),
            static_cast<std::uint32_t>(pieces * (thread + 1) / num_threads)};
  }

  void run_pieces(const Share::Pieces& pieces) const {
    (*body)(std::min(count, pieces.begin * grain), std::min(count, pieces.end * grain));
  }

  // The thread's own share, then a part of what others have left.
  void work_shares(int thread) {
    if (!first_done.load(std::memory_order_acquire)) {
      const Share::Pieces own = share_of(thread);
      (*meanwhile)(std::min(count, own.begin * grain), std::min(count, own.end * grain),
                   first_done);
      wait_for_first();
    }
    Share& own = shares[static_cast<std::size_t>(thread)];
    for (auto pieces = own.take_front(); !pieces.empty(); pieces = own.take_front()) {
      run_pieces(pieces);
    }
    for (int i = 1; i < num_threads; ++i) {
      Share& other = shares[static_cast<std::size_t>((thread + i) % num_threads)];
      for (auto pieces = other.take_back(); !pieces.empty(); pieces = other.take_back()) {
        run_pieces(pieces);
      }
    }
  }

  void wait_for_first() const {
    for (int spins = 0; !first_done.load(std::memory_order_acquire); ++spins) {
      if (spins < kSpins) {
        cpu_relax();
      } else {
        std::this_thread::yield();  // the caller may need this CPU
      }
    }
  }

  // Takes pieces until none is left. Pieces shrink with what remains, so that the threads end
  // together without a trip to the shared counter for every grain.
  void work() {
    std::int64_t begin = next.load(std::memory_order_relaxed);
    while (begin < count) {
      const std::int64_t share = (count - begin) / (2 * num_threads);
      const std::int64_t size = std::max(grain, share / grain * grain);
      const std::int64_t end = std::min(count, begin + size);
      if (next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) {
        (*body)(begin, end);
        begin = next.load(std::memory_order_relaxed);
      }
    }
  }

  std::uint32_t wait_for_change(std::uint32_t old) {
    for (int i = 0; i < kSpins; ++i) {
      const std::uint32_t now = word.load(std::memory_order_acquire);
      if (epoch_of(now) != epoch_of(old)) return now;
      cpu_relax();
    }
    std::uint32_t now = word.load(std::memory_order_acquire);
    while (epoch_of(now) == epoch_of(old) && !stopping.load(std::memory_order_acquire)) {
      word.wait(now, std::memory_order_acquire);
      now = word.load(std::memory_order_acquire);
    }
    return now;
  }

  void run_worker(int thread) {
    std::uint32_t seen = 0;
    while (true) {
      seen = wait_for_change(seen);
      if (stopping.load(std::memory_order_acquire)) return;
      std::uint32_t now = seen;
      bool joined = false;
      while (!joined && epoch_of(now) == epoch_of(seen) && (now & kOpen) != 0) {
        joined = word.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel);
      }
      if (!joined) continue;
      if (meanwhile != nullptr) {
        work_shares(thread);
      } else {
        work();
      }
      word.fetch_sub(1, std::memory_order_release);
    }
  }

  void publish(std::uint32_t flags) {
    const std::uint32_t epoch = epoch_of(word.load(std::memory_order_relaxed)) + 1;
    word.store((epoch << kEpochShift) | flags, std::memory_order_release);
    word.notify_all();  // no system call while nobody sleeps
  }

  void close_and_wait() {
    std::uint32_t now = word.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (int spins = 0; (now & kActive) != 0; ++spins) {
      // A worker may have lost its CPU in the middle of a piece: give it ours.
      if (spins < kSpins) {
        cpu_relax();
      } else {
        std::this_thread::yield();
      }
      now = word.load(std::memory_order_acquire);
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  SPUD_CHECK(num_threads >= 1);
  SPUD_CHECK(num_threads < static_cast<int>(kActive));
  state_->num_threads = num_threads;
  state_->shares = std::make_unique<Share[]>(static_cast<std::size_t>(num_threads));
  state_->workers.reserve(static_cast<std::size_t>(num_threads) - 1);
  for (int i = 1; i < num_threads; ++i) {
    state_->workers.emplace_back([state = state_.get(), i] { state->run_worker(i); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stopping.store(true, std::memory_order_release);
  state_->publish(0);
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::num_threads() const noexcept { return state_->num_threads; }

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(std::int64_t begin, std::int64_t end)> body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  State& state = *state_;
  if (state.num_threads == 1 || count <= grain) {  // nothing to share
    body(0, count);
    return;
  }
  state.body = &body;
  state.count = count;
  state.grain = grain;
  state.meanwhile = nullptr;
  state.next.store(0, std::memory_order_relaxed);
  state.publish(kOpen);
  state.work();
  state.close_and_wait();
}

void ThreadPool::parallel_shares(std::int64_t count, std::int64_t grain, FunctionRef<void()> first,
                                 Meanwhile meanwhile,
                                 FunctionRef<void(std::int64_t begin, std::int64_t end)> body) {
  State& state = *state_;
  if (state.num_threads == 1) {
    first();
    if (count > 0) body(0, count);
    return;
  }
  state.body = &body;
  state.count = std::max<std::int64_t>(count, 0);
  state.grain = std::max<std::int64_t>(grain, 1);
  SPUD_CHECK((state.count + state.grain - 1) / state.grain <=
             std::numeric_limits<std::uint32_t>::max());
  state.meanwhile = &meanwhile;
  state.first_done.store(false, std::memory_order_relaxed);
  for (int i = 0; i < state.num_threads; ++i) {
    state.shares[static_cast<std::size_t>(i)].set(state.share_of(i));
  }
  state.publish(kOpen);
  first();
  state.first_done.store(true, std::memory_order_release);
  state.work_shares(0);
  state.close_and_wait();
}

}  // namespace spud::concurrency
