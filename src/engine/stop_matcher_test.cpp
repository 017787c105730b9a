// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.hpp"

#include <gtest/gtest.h>

namespace spud::engine {
namespace {

struct Outcome {
  std::string text;
  std::string matched;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Feeds `text` in pieces whose lengths are the bits of `cuts`: a 1 after byte i cuts there.
Outcome feed(const std::vector<std::string>& stops, const std::string& text, unsigned cuts) {
  StopMatcher matcher(stops);
  Outcome outcome;
  std::string piece;
  for (std::size_t i = 0; i < text.size(); ++i) {
    piece += text[i];
    if ((cuts >> i & 1U) == 0 && i + 1 < text.size()) continue;
    outcome.text += matcher.push(std::exchange(piece, {}));
    if (matcher.matched()) break;
  }
  if (!matcher.matched()) outcome.text += matcher.finish();
  outcome.matched = matcher.matched().value_or("");
  return outcome;
}

TEST(StopMatcher, OutcomeDoesNotDependOnHowTheTextIsCut) {
  const std::vector<std::string> stops = {"abcd", "bc", "###", "dd"};
  for (const std::string text : {"xabcdy", "xxabxab", "ab##x###y", "cdab", "#ddx", "bbbbbc"}) {
    const Outcome whole = feed(stops, text, 0);
    for (unsigned cuts = 1; cuts < 1U << text.size(); ++cuts) {
      ASSERT_EQ(feed(stops, text, cuts), whole) << text << " cut at " << cuts;
    }
  }
}

TEST(StopMatcher, TextBeforeTheStopStringComesOutAndNothingAfter) {
  EXPECT_EQ(feed({"END"}, "one END two", 0), (Outcome{"one ", "END"}));
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStopString) {
  StopMatcher matcher({"stop"});
  EXPECT_EQ(matcher.push("a st"), "a ");
  EXPECT_EQ(matcher.push("r"), "str");
  EXPECT_EQ(matcher.push("sto"), "");
  EXPECT_EQ(matcher.finish(), "sto");
}

TEST(StopMatcher, OfTwoThatEndTogetherTheLongerCounts) {
  EXPECT_EQ(feed({"c", "abc"}, "xabc", 0), (Outcome{"x", "abc"}));
}

TEST(StopMatcher, WithoutStopStringsNothingIsHeldBack) {
  StopMatcher matcher({"", ""});
  EXPECT_EQ(matcher.push("anything"), "anything");
}

}  // namespace
}  // namespace spud::engine
