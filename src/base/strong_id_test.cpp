// SPDX-License-Identifier: Apache-2.0
#include "base/strong_id.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace spud {
namespace {

using PageId = StrongId<struct PageIdTag, std::uint32_t>;
using SequenceId = StrongId<struct SequenceIdTag, std::uint32_t>;

// What ids are for: none of these may compile by mistake.
static_assert(!std::is_convertible_v<std::uint32_t, PageId>);
static_assert(!std::is_convertible_v<PageId, std::uint32_t>);
static_assert(!std::is_constructible_v<PageId, SequenceId>);
static_assert(!std::is_assignable_v<PageId&, SequenceId>);

TEST(StrongId, StartsAtZero) { EXPECT_EQ(PageId().value, 0u); }

TEST(StrongId, IsOrderedByValue) {
  EXPECT_LT(PageId(1), PageId(2));
  EXPECT_EQ(PageId(7), PageId(7));
  EXPECT_NE(PageId(7), PageId(8));
}

TEST(StrongId, IsAKeyOfHashedContainers) {
  const std::unordered_set<PageId> pages{PageId(1), PageId(2), PageId(1)};
  EXPECT_EQ(pages.size(), 2u);
  EXPECT_TRUE(pages.contains(PageId(2)));
  EXPECT_FALSE(pages.contains(PageId(3)));
}

}  // namespace
}  // namespace spud
