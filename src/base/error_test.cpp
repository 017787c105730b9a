// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spud {
namespace {

TEST(Error, WithinSaysWhereItPassed) {
  const Error error =
      Error(ErrorCode::kDataLoss, "short read").within("tensor 'x'").within("load model");
  EXPECT_EQ(error.message(), "load model: tensor 'x': short read");
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
}

TEST(Error, HasNoParameterUntilOneIsNamed) {
  Error error(ErrorCode::kInvalidArgument, "too large");
  EXPECT_EQ(error.param(), "");
  EXPECT_EQ(std::move(error).with_param("n").param(), "n");
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInternal) + 1);
  EXPECT_TRUE(names.contains("invalid_argument"));
  EXPECT_TRUE(names.contains("resource_exhausted"));
}

}  // namespace
}  // namespace spud
