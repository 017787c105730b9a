// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <gtest/gtest.h>

namespace spud {
namespace {

TEST(CheckDeathTest, SaysWhatWasFalseAndWhere) {
  const int pages = 3;
  EXPECT_DEATH(SPUD_CHECK(pages == 4), "pages == 4.*check_test|check_test.*pages == 4");
}

TEST(Check, EvaluatesItsConditionOnce) {
  int calls = 0;
  SPUD_CHECK(++calls == 1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace spud
