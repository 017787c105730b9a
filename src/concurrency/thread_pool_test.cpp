// SPDX-License-Identifier: Apache-2.0
#include "concurrency/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace spud::concurrency {
namespace {

TEST(ThreadPool, CoversEveryIndexOnceWhateverTheCountGrainAndThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const std::int64_t count : {0, 1, 7, 16, 17, 1000}) {
      for (const std::int64_t grain : {1, 3, 16, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
        pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
        });
        for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, PiecesAreMultiplesOfTheGrainExceptTheLast) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
  pool.parallel_for(1003, 16, [&](std::int64_t begin, std::int64_t end) {
    const std::scoped_lock lock(mutex);
    pieces.emplace_back(begin, end);
  });
  for (const auto& [begin, end] : pieces) {
    EXPECT_EQ(begin % 16, 0);
    EXPECT_TRUE(end == 1003 || end % 16 == 0) << end;
  }
}

TEST(ThreadPool, WritesOfTheLoopAreVisibleToTheCallerAndToTheNextLoop) {
  ThreadPool pool(4);
  std::vector<std::int64_t> values(512, 0);  // plain memory: a race here fails under TSan
  for (int round = 0; round < 3000; ++round) {
    pool.parallel_for(512, 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += i;
    });
  }
  const std::int64_t sum = std::accumulate(values.begin(), values.end(), std::int64_t{0});
  EXPECT_EQ(sum, 3000LL * 511 * 512 / 2);
}

TEST(ThreadPool, WorkersThatFellAsleepWakeForTheNextLoop) {
  ThreadPool pool(2);
  std::atomic<int> together{0};
  // Each of the two pieces waits for the other, so one thread alone cannot finish. Only valid
  // because a started loop stays open until all its pieces are taken.
  const auto rendezvous = [&] {
    together = 0;
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      ++together;
      while (together.load() < 2) std::this_thread::yield();
    });
  };
  rendezvous();
  // Long enough in loop iterations for the worker's spinning to end; no wall clock involved.
  for (volatile std::int64_t i = 0; i < 30'000'000;) i = i + 1;
  rendezvous();
  EXPECT_EQ(together.load(), 2);
}

TEST(ThreadPool, SharesCoverEveryIndexOnceAndAreMultiplesOfTheGrain) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const std::int64_t count : {0, 1, 7, 16, 17, 1000}) {
      for (const std::int64_t grain : {1, 3, 16, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
        pool.parallel_shares(
            count, grain, [] {}, [](auto, auto, const auto&) {},
            [&](std::int64_t begin, std::int64_t end) {
              EXPECT_EQ(begin % grain, 0);
              EXPECT_LT(begin, end);
              for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
            });
        for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, NoShareStartsBeforeTheFirstPartIsDone) {
  ThreadPool pool(4);
  for (int round = 0; round < 300; ++round) {
    std::int64_t prepared = 0;  // plain memory: a race here fails under TSan
    std::atomic<int> wrong{0};
    pool.parallel_shares(
        4, 1, [&] { prepared = round + 1; },
        [&](std::int64_t begin, std::int64_t end, const std::atomic<bool>&) {
          if (end != begin + 1) ++wrong;
        },
        [&](std::int64_t, std::int64_t) {
          if (prepared != round + 1) ++wrong;
        });
    EXPECT_EQ(wrong.load(), 0);
    pool.parallel_for(8, 1, [](std::int64_t, std::int64_t) {});  // kinds of loops may alternate
  }
}

TEST(ThreadPool, AThreadThatIsDoneTakesWhatASlowOneHasLeft) {
  constexpr std::int64_t kCount = 64;
  ThreadPool pool(2);
  std::atomic<std::int64_t> by_other{0};
  std::int64_t first_piece = 0;
  std::int64_t done_meanwhile = 0;
  pool.parallel_shares(
      kCount, 1, [] {}, [](auto, auto, const auto&) {},
      [&](std::int64_t begin, std::int64_t end) {
        if (begin != 0) {
          by_other += end - begin;
          return;
        }
        first_piece = end;  // held up here until the other thread has done all the rest
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (by_other.load() < kCount - first_piece &&
               std::chrono::steady_clock::now() < give_up) {
          std::this_thread::yield();
        }
        done_meanwhile = by_other.load();
      });
  EXPECT_EQ(done_meanwhile, kCount - first_piece);
  EXPECT_LE(first_piece, kCount / 4);  // of a share of 32
}

TEST(ThreadPool, AThreadTakesItsShareFromFrontToBack) {
  constexpr std::int64_t kHalf = 128;
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 100; ++round) {
    std::int64_t at = 0;  // the caller's share is the first half
    pool.parallel_shares(
        2 * kHalf, 1, [] {}, [](auto, auto, const auto&) {},
        [&](std::int64_t begin, std::int64_t end) {
          if (std::this_thread::get_id() != caller || begin >= kHalf) return;
          EXPECT_EQ(begin, at);
          at = end;
        });
  }
}

TEST(ThreadPool, CanBeDestroyedWithoutEverRunning) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

}  // namespace
}  // namespace spud::concurrency
