// SPDX-License-Identifier: Apache-2.0
#include "kvcache/kv_cache.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kernels/kernel_table.hpp"

namespace spud::kvcache {
namespace {

constexpr Geometry kGeometry{
    .num_layers = 2, .num_kv_heads = 3, .head_dim = 16, .type = kernels::KvType::kInt8};

std::unique_ptr<KvCache> make_cache(std::size_t pages) {
  auto cache = KvCache::create(kGeometry, pages);
  EXPECT_TRUE(cache.has_value());
  return std::move(*cache);
}

TEST(Geometry, PageHoldsKeysAndValuesOfAllLayers) {
  Geometry geometry = kGeometry;
  geometry.type = kernels::KvType::kF16;
  EXPECT_EQ(geometry.page_bytes(), 2U * 3U * 32U * 16U * 2U * 2U);
  geometry.type = kernels::KvType::kInt8;  // and a scale for each key and value
  EXPECT_EQ(geometry.page_bytes(), 2U * 3U * 32U * (16U + 2U) * 2U);
}

TEST(Geometry, PagesRoundUp) {
  EXPECT_EQ(pages_for(0), 0U);
  EXPECT_EQ(pages_for(1), 1U);
  EXPECT_EQ(pages_for(32), 1U);
  EXPECT_EQ(pages_for(33), 2U);
}

TEST(KvCache, GrowsByWholePagesAndOnlyWhatIsMissing) {
  auto cache = make_cache(4);
  BlockTable table;
  ASSERT_TRUE(cache->grow(table, 1));
  EXPECT_EQ(table.pages.size(), 1U);
  ASSERT_TRUE(cache->grow(table, 32));
  EXPECT_EQ(table.pages.size(), 1U);
  ASSERT_TRUE(cache->grow(table, 33));
  EXPECT_EQ(table.pages.size(), 2U);
  EXPECT_EQ(cache->free_pages(), 2U);
}

TEST(KvCache, ExhaustionTakesNothing) {
  auto cache = make_cache(3);
  BlockTable first;
  BlockTable second;
  ASSERT_TRUE(cache->grow(first, 64));
  EXPECT_FALSE(cache->grow(second, 64));
  EXPECT_TRUE(second.pages.empty());
  EXPECT_EQ(cache->free_pages(), 1U);
  EXPECT_TRUE(cache->grow(second, 32));
}

TEST(KvCache, ReusesReleasedPagesLastInFirstOut) {
  auto cache = make_cache(8);
  BlockTable first;
  ASSERT_TRUE(cache->grow(first, 96));
  const std::vector<PageId> used = first.pages;
  cache->release(first);
  EXPECT_TRUE(first.pages.empty());
  EXPECT_EQ(cache->free_pages(), 8U);
  BlockTable second;
  ASSERT_TRUE(cache->grow(second, 96));
  EXPECT_EQ(second.pages, used);
}

TEST(KvCache, ReleasingTwiceGivesPagesBackOnce) {
  auto cache = make_cache(4);
  BlockTable table;
  ASSERT_TRUE(cache->grow(table, 64));
  cache->release(table);
  cache->release(table);
  EXPECT_EQ(cache->free_pages(), 4U);
}

TEST(KvCacheDeathTest, CopiedTableCannotGiveItsPagesBackAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto cache = make_cache(4);
  BlockTable table;
  ASSERT_TRUE(cache->grow(table, 64));
  BlockTable copy = table;
  cache->release(table);
  EXPECT_DEATH(cache->release(copy), "holders_");
}

TEST(KvCache, BlocksOfAllPagesLayersAndHeadsAreDisjointAndAligned) {
  auto cache = make_cache(2);
  std::set<std::byte*> starts;
  for (std::uint32_t page = 0; page < 2; ++page) {
    for (std::int64_t layer = 0; layer < kGeometry.num_layers; ++layer) {
      for (std::int64_t head = 0; head < kGeometry.num_kv_heads; ++head) {
        starts.insert(cache->block(PageId(page), layer, head));
      }
    }
  }
  ASSERT_EQ(starts.size(), 12U);
  std::byte* previous = nullptr;
  for (std::byte* start : starts) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start) % 64, 0U);
    if (previous != nullptr) {
      EXPECT_GE(start - previous, static_cast<std::ptrdiff_t>(kGeometry.block_bytes()));
    }
    previous = start;
  }
}

TEST(KvCache, RefusesEmptyGeometryNoPagesAndTooMuchMemory) {
  EXPECT_EQ(KvCache::create(Geometry{}, 1).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(KvCache::create(kGeometry, 0).error().code(), ErrorCode::kInvalidArgument);
  const Geometry huge{.num_layers = 1 << 20, .num_kv_heads = 1 << 10, .head_dim = 256};
  EXPECT_EQ(KvCache::create(huge, 4'000'000'000).error().code(), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace spud::kvcache
