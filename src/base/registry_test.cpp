// SPDX-License-Identifier: Apache-2.0
#include "base/registry.hpp"

#include <gtest/gtest.h>

namespace spud {
namespace {

struct Named {
  std::string_view name;
};

constexpr auto kTable = make_registry<Named>({{"shrink"}, {"serve"}, {"eval"}});

TEST(Registry, FindsTheEntryItself) {
  const auto found = find_in_registry<Named>(kTable, "command", "serve");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, &kTable[1]);
}

TEST(Registry, AnUnknownNameOffersTheNearest) {
  const auto missing = find_in_registry<Named>(kTable, "command", "shrnik");
  EXPECT_EQ(missing.error().message(),
            "unknown command 'shrnik'; did you mean 'shrink'? (known: shrink, serve, eval)");
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
}

TEST(Registry, ANameLikeNoneListsTheKnown) {
  const auto far = find_in_registry<Named>(kTable, "command", "zzzzzz");
  EXPECT_EQ(far.error().message(), "unknown command 'zzzzzz'; known: shrink, serve, eval");
}

TEST(Registry, NamesAreComparedWhole) {
  EXPECT_FALSE(find_in_registry<Named>(kTable, "command", "serv"));
  EXPECT_FALSE(find_in_registry<Named>(kTable, "command", ""));
}

}  // namespace
}  // namespace spud
