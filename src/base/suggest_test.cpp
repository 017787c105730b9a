// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace spud {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kKnown[] = {"temperature", "top_p", "top_k", "n"};

TEST(NearestWord, ForgivesOneSlipOfEveryKind) {
  EXPECT_EQ(nearest_word("temperatur", kKnown), "temperature");    // left out
  EXPECT_EQ(nearest_word("temperaturre", kKnown), "temperature");  // one too many
  EXPECT_EQ(nearest_word("temperatore", kKnown), "temperature");   // replaced
  EXPECT_EQ(nearest_word("temperatuer", kKnown), "temperature");   // neighbours swapped
}

TEST(NearestWord, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_word("max_tokens", kKnown), std::nullopt);
  EXPECT_EQ(nearest_word("temperature", {}), std::nullopt);
}

TEST(NearestWord, TakesTheNearest) {
  constexpr std::string_view kWords[] = {"serves", "serve"};
  EXPECT_EQ(nearest_word("serv", kWords), "serve");
}

TEST(SuggestionText, ListsTheKnownWithAndWithoutANearOne) {
  EXPECT_EQ(suggestion_text("top_q", kKnown),
            "; did you mean 'top_p'? (known: temperature, top_p, top_k, n)");
  EXPECT_EQ(suggestion_text("max_tokens", kKnown), "; known: temperature, top_p, top_k, n");
}

TEST(SuggestionText, IsCutAfterTwentyNames) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back("name" + std::to_string(i));
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string text = suggestion_text("unlike", known);
  EXPECT_THAT(text, HasSubstr("name19"));
  EXPECT_THAT(text, Not(HasSubstr("name20")));
}

}  // namespace
}  // namespace spud
