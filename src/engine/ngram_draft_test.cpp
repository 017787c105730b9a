// SPDX-License-Identifier: Apache-2.0
#include "engine/ngram_draft.hpp"

#include <gmock/gmock.h>

namespace spud::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<tokenizer::TokenId>;

TEST(NgramDraft, ProposesWhatFollowedTheLastThreeTokensLatest) {
  NgramDraft draft;
  EXPECT_THAT(draft.propose(Tokens{1, 2, 3, 4, 9, 1, 2, 3, 5, 6, 1, 2, 3}, 2), ElementsAre(5, 6));
}

TEST(NgramDraft, KeepsToItsLimitAndToTheText) {
  NgramDraft draft;
  EXPECT_THAT(draft.propose(Tokens{1, 2, 3, 4, 1, 2, 3}, 1), ElementsAre(4));
  NgramDraft other;
  EXPECT_THAT(other.propose(Tokens{7, 7, 7, 7}, 8), ElementsAre(7));
  NgramDraft third;
  EXPECT_THAT(third.propose(Tokens{1, 2, 3, 4, 1, 2, 3}, 0), IsEmpty());
}

TEST(NgramDraft, ProposesNothingForWhatIsNew) {
  NgramDraft draft;
  EXPECT_THAT(draft.propose(Tokens{}, 4), IsEmpty());
  EXPECT_THAT(draft.propose(Tokens{1, 2, 3}, 4), IsEmpty());
  EXPECT_THAT(draft.propose(Tokens{1, 2, 3, 4, 5, 6}, 4), IsEmpty());
}

TEST(NgramDraft, PausesWhileItsGuessesAreWrongAndTriesAgain) {
  NgramDraft draft;
  Tokens text{1, 2, 3, 4, 1, 2, 3};
  int proposals = 0;
  for (int i = 0; i < 400; ++i) {
    const auto guess = draft.propose(text, 4);
    if (!guess.empty()) {
      ++proposals;
      draft.report(std::ssize(guess), 0);
    }
    text.push_back(text[text.size() - 4]);
  }
  EXPECT_GT(proposals, 10);
  EXPECT_LT(proposals, 60);
}

}  // namespace
}  // namespace spud::engine
