// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/checked_math.hpp"
#include "base/registry.hpp"
#include "base/result.hpp"
#include "base/sha256.hpp"
#include "base/strong_id.hpp"

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

TEST(Error, WithinSaysWhereItPassed) {
  Error error = Error(ErrorCode::kDataLoss, "short read").within("tensor 'x'").within("load model");
  EXPECT_EQ(error.message(), "load model: tensor 'x': short read");
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
}

TEST(CheckedMath, RefusesWhatWouldWrap) {
  EXPECT_EQ(checked_mul<std::uint64_t>(1ULL << 40, 1ULL << 40), std::nullopt);
  EXPECT_EQ(checked_add<std::uint64_t>(~0ULL, 1), std::nullopt);
  EXPECT_EQ(checked_round_up<std::uint64_t>(~0ULL, 32), std::nullopt);
  EXPECT_EQ(checked_round_up<std::uint64_t>(33, 32), 64u);
  EXPECT_EQ(checked_cast<std::int32_t>(std::uint64_t{1} << 31), std::nullopt);
}

TEST(Sha256, MatchesThePublishedVector) {
  EXPECT_EQ(sha256_hex(std::string_view("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

struct Named {
  std::string_view name;
};

TEST(Registry, AnUnknownNameOffersTheNearest) {
  static constexpr auto kTable = make_registry<Named>({{"shrink"}, {"serve"}, {"eval"}});
  EXPECT_EQ((*find_in_registry<Named>(kTable, "command", "serve"))->name, "serve");
  const auto missing = find_in_registry<Named>(kTable, "command", "shrnik");
  EXPECT_EQ(missing.error().message(),
            "unknown command 'shrnik'; did you mean 'shrink'? (known: shrink, serve, eval)");
  const auto far = find_in_registry<Named>(kTable, "command", "zzzzzz");
  EXPECT_EQ(far.error().message(), "unknown command 'zzzzzz'; known: shrink, serve, eval");
}

}  // namespace
}  // namespace spud
