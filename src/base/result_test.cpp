// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace spud {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  SPUD_TRY(const int once, half(value));
  SPUD_TRY(half(once));
  SPUD_TRY(const int twice, half(once));
  return twice;
}

TEST(Result, TryPassesTheFirstErrorOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
}

TEST(Result, TryEvaluatesItsExpressionOnce) {
  int calls = 0;
  const auto count = [&]() -> Result<int> { return ++calls; };
  const auto twice = [&]() -> Result<int> {
    SPUD_TRY(const int value, count());
    SPUD_TRY(count());
    return value;
  };
  EXPECT_EQ(twice().value(), 1);
  EXPECT_EQ(calls, 2);
}

TEST(Result, TryMovesWhatCanNotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto pass_on = [&]() -> Result<std::unique_ptr<int>> {
    SPUD_TRY(auto value, make());
    return value;
  };
  EXPECT_EQ(**pass_on(), 7);
}

TEST(Result, TryAssignsToWhatIsThereAlready) {
  int value = 0;
  const auto set = [&]() -> Result<void> {
    SPUD_TRY(value, half(8));
    return {};
  };
  EXPECT_TRUE(set());
  EXPECT_EQ(value, 4);
}

TEST(Result, FailWithinKeepsKindAndParameter) {
  const auto failed = [] {
    return Result<void>(
        fail_within("request", Error(ErrorCode::kNotFound, "no such model").with_param("model")));
  }();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "request: no such model");
  EXPECT_EQ(failed.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(failed.error().param(), "model");
}

}  // namespace
}  // namespace spud
