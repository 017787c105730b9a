// SPDX-License-Identifier: Apache-2.0
#include "base/checked_math.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace spud {
namespace {

constexpr auto kMax64 = std::numeric_limits<std::uint64_t>::max();
constexpr auto kMaxSigned = std::numeric_limits<std::int64_t>::max();
constexpr auto kMinSigned = std::numeric_limits<std::int64_t>::min();

TEST(CheckedMath, AddsUpToTheLastValue) {
  EXPECT_EQ(checked_add<std::uint64_t>(kMax64 - 1, 1), kMax64);
  EXPECT_EQ(checked_add<std::uint64_t>(kMax64, 1), std::nullopt);
  EXPECT_EQ(checked_add<std::int64_t>(kMaxSigned, 1), std::nullopt);
  EXPECT_EQ(checked_add<std::int64_t>(kMinSigned, -1), std::nullopt);
}

TEST(CheckedMath, MultipliesUpToTheLastValue) {
  EXPECT_EQ(checked_mul<std::uint64_t>(1ULL << 32, 1ULL << 31), 1ULL << 63);
  EXPECT_EQ(checked_mul<std::uint64_t>(1ULL << 40, 1ULL << 40), std::nullopt);
  EXPECT_EQ(checked_mul<std::int64_t>(kMinSigned, -1), std::nullopt);
  EXPECT_EQ(checked_mul<std::uint64_t>(kMax64, 0), 0u);
}

TEST(CheckedMath, SmallTypesAreNotWidened) {
  EXPECT_EQ(checked_add<std::uint8_t>(200, 56), std::nullopt);
  EXPECT_EQ(checked_mul<std::int8_t>(-128, -1), std::nullopt);
}

TEST(CheckedMath, RoundsUpToWholeSteps) {
  EXPECT_EQ(checked_round_up<std::uint64_t>(0, 32), 0u);
  EXPECT_EQ(checked_round_up<std::uint64_t>(32, 32), 32u);
  EXPECT_EQ(checked_round_up<std::uint64_t>(33, 32), 64u);
  EXPECT_EQ(checked_round_up<std::uint64_t>(kMax64, 32), std::nullopt);
  EXPECT_EQ(checked_round_up<std::uint64_t>(kMax64, 1), kMax64);
}

TEST(CheckedMath, CastsOnlyWhatFits) {
  EXPECT_EQ(checked_cast<std::int32_t>(std::uint64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_cast<std::int32_t>((std::uint64_t{1} << 31) - 1), 0x7FFFFFFF);
  EXPECT_EQ(checked_cast<std::uint64_t>(-1), std::nullopt);
  EXPECT_EQ(checked_cast<std::int8_t>(-128), std::int8_t{-128});
}

}  // namespace
}  // namespace spud
