// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.hpp"

#include <gtest/gtest.h>

namespace spud {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(sha256_hex(std::string_view("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(std::string_view("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnWhereTheInputIsCut) {
  Sha256 hash;
  hash.update(std::string_view("a"));
  hash.update(std::string_view());
  hash.update(bytes_of("bc"));
  EXPECT_EQ(hash.finish(), sha256(bytes_of("abc")));
}

TEST(Sha256, GoesOnAfterAMove) {
  Sha256 first;
  first.update(std::string_view("ab"));
  Sha256 second = std::move(first);
  second.update(std::string_view("c"));
  EXPECT_EQ(second.finish(), sha256(bytes_of("abc")));
}

TEST(ToHex, KeepsLeadingZeros) {
  EXPECT_EQ(to_hex(bytes_of(std::string_view("\x00\x0f\xf0", 3))), "000ff0");
  EXPECT_EQ(to_hex({}), "");
}

TEST(EqualConstantTime, ComparesContentsAndLength) {
  EXPECT_TRUE(equal_constant_time(bytes_of("key"), bytes_of("key")));
  EXPECT_FALSE(equal_constant_time(bytes_of("key"), bytes_of("kez")));
  EXPECT_FALSE(equal_constant_time(bytes_of("key"), bytes_of("keys")));
  EXPECT_FALSE(equal_constant_time(bytes_of("key"), {}));
  EXPECT_TRUE(equal_constant_time({}, {}));
}

}  // namespace
}  // namespace spud
