// SPDX-License-Identifier: Apache-2.0
#include "concurrency/bounded_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace spud::concurrency {
namespace {

const SteadyTime kNow{};  // long past: do not wait
const SteadyTime kForever = std::chrono::steady_clock::now() + std::chrono::hours(1);

TEST(BoundedQueue, RefusesWhenFullAndLeavesTheItem) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**queue.try_pop(), 1);
  EXPECT_TRUE(queue.try_push(std::move(second)));
}

TEST(BoundedQueue, HandsOutInOrder) {
  BoundedQueue<int> queue(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.try_push(int{i}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.try_pop(), i);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TEST(BoundedQueue, PopReturnsNothingAfterTheDeadline) {
  BoundedQueue<int> queue(3);
  EXPECT_EQ(queue.pop_until(kNow), std::nullopt);
  EXPECT_TRUE(queue.try_push(7));
  EXPECT_EQ(queue.pop_until(kNow), 7);
}

TEST(BoundedQueue, CloseRefusesNewItemsAndHandsOutTheRest) {
  BoundedQueue<int> queue(3);
  EXPECT_TRUE(queue.try_push(1));
  queue.close();
  EXPECT_FALSE(queue.try_push(2));
  EXPECT_EQ(queue.pop_until(kForever), 1);
  EXPECT_EQ(queue.pop_until(kForever), std::nullopt);
}

TEST(BoundedQueue, CloseWakesAWaitingConsumer) {
  BoundedQueue<int> queue(1);
  std::thread consumer([&] { EXPECT_EQ(queue.pop_until(kForever), std::nullopt); });
  queue.close();
  consumer.join();
}

TEST(BoundedQueue, ManyProducersAndConsumersLoseNothing) {
  BoundedQueue<int> queue(8);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int c = 0; c < 2; ++c) {
    threads.emplace_back([&] {
      while (const auto item = queue.pop_until(kForever)) sum += *item;
    });
  }
  std::vector<std::thread> producers;
  for (int p = 0; p < 2; ++p) {
    producers.emplace_back([&] {
      for (int i = 1; i <= 2000; ++i) {
        while (!queue.try_push(int{i})) std::this_thread::yield();
      }
    });
  }
  for (auto& producer : producers) producer.join();
  queue.close();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum.load(), 2LL * 2000 * 2001 / 2);
}

}  // namespace
}  // namespace spud::concurrency
