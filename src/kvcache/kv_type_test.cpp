// SPDX-License-Identifier: Apache-2.0
#include "kvcache/kv_type.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spud::kvcache {
namespace {

TEST(KvType, EveryNameIsParsedToTheTypeThatHasIt) {
  for (const std::string_view name : kv_type_names()) {
    const auto type = parse_kv_type(name);
    ASSERT_TRUE(type.has_value());
    EXPECT_EQ(kernels::to_string(*type), name);
  }
}

TEST(KvType, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(parse_kv_type("q4").error().message(),
              ::testing::AllOf(::testing::HasSubstr("'q4'"), ::testing::HasSubstr("int8 or f16")));
}

}  // namespace
}  // namespace spud::kvcache
