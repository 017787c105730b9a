// SPDX-License-Identifier: Apache-2.0
#include "gateway/api_keys.hpp"

#include <gmock/gmock.h>

namespace spud::gateway {
namespace {

using ::testing::HasSubstr;

TEST(ApiKeys, KnowAKeyByItsDigestOnly) {
  const auto keys = ApiKeys::parse(
      fmt::format("# comment\n\nalice {}\n  bob {}\n", sha256_hex("key-a"), sha256_hex("key-b")),
      "keys.txt");
  ASSERT_TRUE(keys.has_value()) << keys.error().message();
  EXPECT_TRUE(keys->required());
  EXPECT_EQ(keys->find_tenant("Bearer key-a")->name, "alice");
  EXPECT_EQ(keys->find_tenant("bearer key-b")->name, "bob");
  for (const std::string& wrong :
       {std::string("Bearer key-c"), std::string("Bearer "), std::string("key-a"), std::string(""),
        "Bearer " + sha256_hex("key-a")}) {
    EXPECT_EQ(keys->find_tenant(wrong), nullptr) << wrong;
  }
}

TEST(ApiKeys, RefuseALineTheyCannotReadAndAnEmptyFile) {
  const std::string digest = sha256_hex("k");
  for (const std::string& text :
       {std::string("alice"), std::string("alice 1234"), "alice " + digest + " rest",
        "alice " + digest + " weight=0", "alice " + digest + " weight=x",
        "alice " + digest + " priority=1001", "alice " + digest.substr(1) + "g"}) {
    const auto keys = ApiKeys::parse(text, "keys.txt");
    ASSERT_FALSE(keys.has_value()) << text;
    EXPECT_THAT(keys.error().message(), HasSubstr("keys.txt line 1"));
  }
  EXPECT_FALSE(ApiKeys::parse("# nothing\n", "keys.txt").has_value());
}

TEST(ApiKeys, CarryTheTenantsShareAndPriority) {
  const auto keys = ApiKeys::parse(
      fmt::format("a {} weight=2.5 priority=-3\nb {}\n", sha256_hex("key-a"), sha256_hex("key-b")),
      "keys.txt");
  ASSERT_TRUE(keys.has_value()) << keys.error().message();
  EXPECT_EQ(*keys->find_tenant("Bearer key-a"),
            (Tenant{.name = "a", .weight = 2.5, .priority = -3}));
  EXPECT_EQ(*keys->find_tenant("Bearer key-b"), (Tenant{.name = "b"}));
}

TEST(ApiKeys, AreNotRequiredByDefault) { EXPECT_FALSE(ApiKeys().required()); }

}  // namespace
}  // namespace spud::gateway
