// SPDX-License-Identifier: Apache-2.0
#include "kvcache/prefix_cache.hpp"

#include <gtest/gtest.h>

#include <random>

namespace spud::kvcache {
namespace {

constexpr Geometry kGeometry{.num_layers = 1, .num_kv_heads = 1, .head_dim = 16};

std::vector<std::int32_t> tokens(std::size_t count, std::int32_t first = 0) {
  std::vector<std::int32_t> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = first + static_cast<std::int32_t>(i);
  return out;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  struct User {
    BlockTable table;
    PrefixCursor cursor;
  };
  // Computes all of `text`, makes it known and keeps it.
  User run(const std::vector<std::int32_t>& text, std::string_view salt = "") {
    User user;
    prefix_.attach(salt, text, user.table, user.cursor);
    EXPECT_TRUE(cache_->grow(user.table, text.size()));
    prefix_.publish(salt, text, text.size(), user.table, user.cursor);
    return user;
  }
  void leave(User& user) {
    prefix_.touch(user.cursor);
    cache_->release(user.table);
    user.cursor = {};
  }
  std::size_t available() { return cache_->free_pages() + cache_->pages().num_reclaimable(); }

  std::unique_ptr<KvCache> cache_ = *KvCache::create(kGeometry, 16);
  PrefixCache prefix_{*cache_};
};

TEST_F(PrefixCacheTest, FindsTheLongestRunOfFullPagesButNeverTheLastToken) {
  User user = run(tokens(100));
  EXPECT_EQ(prefix_.num_pages(), 3U);
  EXPECT_EQ(prefix_.peek("", tokens(100)), 96U);
  EXPECT_EQ(prefix_.peek("", tokens(97)), 96U);
  EXPECT_EQ(prefix_.peek("", tokens(96)), 64U);
  EXPECT_EQ(prefix_.peek("", tokens(1)), 0U);
  EXPECT_EQ(prefix_.peek("", {}), 0U);
  auto other = tokens(100);
  other[40] = 7;
  EXPECT_EQ(prefix_.peek("", other), 32U);
  EXPECT_EQ(prefix_.peek("", tokens(100, 1)), 0U);
  leave(user);
}

TEST_F(PrefixCacheTest, TenantsDoNotSeeEachOthersPages) {
  User user = run(tokens(70), "a");
  EXPECT_EQ(prefix_.peek("a", tokens(70)), 64U);
  EXPECT_EQ(prefix_.peek("b", tokens(70)), 0U);
  User other = run(tokens(70), "b");
  EXPECT_EQ(prefix_.num_pages(), 4U);
  leave(user);
  leave(other);
}

TEST_F(PrefixCacheTest, SharedPagesAreStoredOnceAndHeldUntilTheLastUserLeaves) {
  User first = run(tokens(100));
  User second;
  EXPECT_EQ(prefix_.attach("", tokens(100), second.table, second.cursor), 96U);
  EXPECT_EQ(cache_->free_pages(), 12U);
  EXPECT_TRUE(
      std::equal(second.table.pages.begin(), second.table.pages.end(), first.table.pages.begin()));
  leave(first);
  EXPECT_EQ(cache_->pages().num_reclaimable(), 0U);
  EXPECT_EQ(prefix_.evict(99), 0U);
  leave(second);
  EXPECT_EQ(cache_->pages().num_reclaimable(), 3U);
  EXPECT_EQ(available(), 16U);
}

TEST_F(PrefixCacheTest, PageComputedTwiceIsReplacedByItsTwin) {
  User first;
  User second;
  const auto text = tokens(64);
  ASSERT_TRUE(cache_->grow(first.table, 64));
  ASSERT_TRUE(cache_->grow(second.table, 64));
  prefix_.publish("", text, 64, first.table, first.cursor);
  prefix_.publish("", text, 64, second.table, second.cursor);
  EXPECT_EQ(first.table.pages, second.table.pages);
  EXPECT_EQ(cache_->free_pages(), 14U);
  leave(first);
  leave(second);
}

TEST_F(PrefixCacheTest, SequenceInItsPromptTakesWhatOthersFilledMeanwhile) {
  User slow;
  const auto text = tokens(100);
  ASSERT_TRUE(cache_->grow(slow.table, 10));
  User fast = run(text);
  EXPECT_EQ(prefix_.attach("", text, slow.table, slow.cursor), 96U);
  EXPECT_EQ(slow.table.pages.size(), 3U);
  EXPECT_EQ(slow.table.pages[0], fast.table.pages[0]);
  EXPECT_EQ(cache_->free_pages(), 12U);
  leave(slow);
  leave(fast);
}

TEST_F(PrefixCacheTest, EvictsTheLongestUnusedFirstAndLeavesBeforeWhatTheyContinue) {
  User a = run(tokens(65));
  User b = run(tokens(65, 1000));
  leave(a);
  leave(b);
  User again;
  prefix_.attach("", tokens(65), again.table, again.cursor);
  leave(again);  // a is the newer one now
  EXPECT_EQ(prefix_.evict(1), 1U);
  EXPECT_EQ(prefix_.peek("", tokens(65, 1000)), 32U);
  EXPECT_EQ(prefix_.peek("", tokens(65)), 64U);
  EXPECT_EQ(prefix_.evict(2), 2U);
  EXPECT_EQ(prefix_.peek("", tokens(65, 1000)), 0U);
  EXPECT_EQ(prefix_.peek("", tokens(65)), 32U);
  EXPECT_EQ(prefix_.num_evicted(), 3U);
}

// Against a plain map of prefixes: the tree finds what was published and not evicted, nothing else,
// and no page is lost or held twice.
TEST_F(PrefixCacheTest, RandomUseNeverLosesAPage) {
  std::mt19937 random(1);
  std::vector<User> users;
  std::vector<std::vector<std::int32_t>> texts;
  for (int step = 0; step < 20'000; ++step) {
    if (users.size() < 4 && random() % 2 == 0) {
      // Few distinct first pages, so that prefixes collide.
      std::vector<std::int32_t> text;
      for (std::size_t page = 0, count = random() % 4; page <= count; ++page) {
        const auto part = tokens(32, static_cast<std::int32_t>(random() % 3));
        text.insert(text.end(), part.begin(), part.end());
      }
      text.resize(text.size() - random() % 31, 0);
      User user;
      const std::string salt(1, static_cast<char>('a' + random() % 2));
      const std::size_t expected = prefix_.peek(salt, text);
      EXPECT_EQ(prefix_.attach(salt, text, user.table, user.cursor), expected);
      const std::size_t needed = pages_for(text.size()) - user.table.pages.size();
      while (cache_->free_pages() < needed && prefix_.evict(1) > 0) {
      }
      if (cache_->grow(user.table, text.size())) {
        prefix_.publish(salt, text, text.size(), user.table, user.cursor);
        EXPECT_GE(prefix_.peek(salt, text), (text.size() - 1) / 32 * 32);
      }
      users.push_back(std::move(user));
      texts.push_back(std::move(text));
    } else if (!users.empty()) {
      const std::size_t at = random() % users.size();
      leave(users[at]);
      users.erase(users.begin() + static_cast<std::ptrdiff_t>(at));
      texts.erase(texts.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (random() % 100 == 0) prefix_.evict(random() % 5);
    if (users.empty()) {
      ASSERT_EQ(available(), 16U);
    }
    ASSERT_LE(prefix_.num_pages(), 16U);
  }
  for (User& user : users) leave(user);
  EXPECT_EQ(available(), 16U);
  const std::size_t cached = prefix_.num_pages();
  EXPECT_EQ(prefix_.evict(99), cached);
  EXPECT_EQ(cache_->free_pages(), 16U);
}

TEST_F(PrefixCacheTest, DestructionGivesAllPagesBack) {
  auto cache = *KvCache::create(kGeometry, 4);
  {
    PrefixCache prefix(*cache);
    BlockTable table;
    PrefixCursor cursor;
    ASSERT_TRUE(cache->grow(table, 64));
    prefix.publish("", tokens(64), 64, table, cursor);
    cache->release(table);
    EXPECT_EQ(cache->free_pages(), 2U);
  }
  EXPECT_EQ(cache->free_pages(), 4U);
}

}  // namespace
}  // namespace spud::kvcache
