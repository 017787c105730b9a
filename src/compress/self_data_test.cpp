// SPDX-License-Identifier: Apache-2.0
#include "compress/self_data.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "compress/testing/chain_fixture.hpp"

namespace spud::compress::testing {
namespace {

using quality::TokenId;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

class CountingSampler final : public quality::TextSampler {
 public:
  Result<std::vector<std::vector<TokenId>>> sample(std::int64_t count, std::int64_t,
                                                   std::uint64_t seed) override {
    ++calls;
    return std::vector<std::vector<TokenId>>(static_cast<std::size_t>(count),
                                             {static_cast<TokenId>(seed), 7});
  }
  int calls = 0;
};

class SelfData : public ChainTest {
 protected:
  std::filesystem::path file() const { return folder_ / "self.txt"; }
  ChainOptions self_chain() const {
    auto chain = options(recipe_yaml("int4\n    alternatives: [rtn]"), builtin_passes());
    chain.recipe.measure.data = "self";
    return chain;
  }
  std::string artifact_bytes() const {
    std::ifstream in(artifact(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(SelfData, IsSampledOnceAndReadBackAfterwards) {
  CountingSampler sampler;
  const auto ask = [&](std::string model, std::int64_t count, std::uint64_t seed) {
    return *SavedSampler(sampler, file(), std::move(model)).sample(count, 40, seed);
  };
  const auto first = ask("a", 2, 5);
  EXPECT_THAT(first, ElementsAre(ElementsAre(5, 7), ElementsAre(5, 7)));
  EXPECT_EQ(ask("a", 2, 5), first);
  EXPECT_EQ(sampler.calls, 1);
  ask("a", 3, 5);
  ask("a", 3, 6);
  ask("b", 3, 6);
  EXPECT_EQ(sampler.calls, 4) << "another question is asked anew";
}

TEST_F(SelfData, IsSampledAgainWhenTheFileIsDamaged) {
  CountingSampler sampler;
  SavedSampler saved(sampler, file(), "a");
  ASSERT_TRUE(saved.sample(3, 40, 5));
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - 4);
  ASSERT_TRUE(saved.sample(3, 40, 5));
  EXPECT_EQ(sampler.calls, 2);
  std::ofstream(file(), std::ios::app) << "word\n";
  ASSERT_TRUE(saved.sample(3, 40, 5));
  EXPECT_EQ(sampler.calls, 3);
}

TEST_F(SelfData, DrawsEnoughForEverySplit) {
  EXPECT_EQ(self_samples({.sequence_tokens = 109,
                          .validation_tokens = 1000,
                          .holdout_tokens = 100,
                          .calibration_tokens = 100}),
            25);
  EXPECT_EQ(self_samples({.sequence_tokens = 109,
                          .validation_tokens = 100,
                          .holdout_tokens = 100,
                          .calibration_tokens = 1000}),
            50);
}

TEST_F(SelfData, AChainMeasuresOnDisjointHashedSamplesOfTheOriginal) {
  const auto journal = run(self_chain());
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->steps[0].status, StepStatus::kAccepted)
      << journal->steps[0].attempts.front().reason;
  ASSERT_EQ(journal->data.size(), 3u);
  EXPECT_THAT(journal->data, Each(Field(&DataUse::name, HasSubstr("self (seed 20261130)"))));
  std::set<std::string> digests;
  for (const DataUse& use : journal->data) {
    digests.insert(use.digest);
    EXPECT_GE(use.tokens, 100) << use.use;
  }
  EXPECT_EQ(digests.size(), 3u);
}

TEST_F(SelfData, AStoppedChainGoesOnWithTheSameSamplesToTheSameBytes) {
  ASSERT_TRUE(run(self_chain()));
  const std::string expected = artifact_bytes();
  ASSERT_GT(expected.size(), 1000u);
  for (const bool keep_file : {true, false}) {
    std::filesystem::remove_all(folder_ / "out");
    auto chain = self_chain();
    bool cancelled = false;
    stop_after_first_decision(chain, cancelled);
    ASSERT_FALSE(run(chain));
    const auto kept = folder_ / "out" / "work" / "self.txt";
    EXPECT_TRUE(std::filesystem::exists(kept));
    if (!keep_file) std::filesystem::remove(kept);  // sampled again: the same by its seed
    cancelled = false;
    chain.on_event = nullptr;
    const auto journal = run(chain);
    ASSERT_TRUE(journal) << journal.error().message();
    EXPECT_TRUE(artifact_bytes() == expected);
  }
}

TEST_F(SelfData, SamplesChangedFromOutsideAreNoticed) {
  auto chain = self_chain();
  bool cancelled = false;
  stop_after_first_decision(chain, cancelled);
  ASSERT_FALSE(run(chain));
  const auto path = folder_ / "out" / "work" / "self.txt";
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  in.close();
  const std::size_t first_sample = text.find('\n') + 1;
  text.erase(first_sample, text.find('\n', first_sample) - first_sample);
  text.insert(first_sample, "65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87");
  std::ofstream(path) << text;
  cancelled = false;
  const auto resumed = run(chain);
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message(), HasSubstr("another data set"));
}

}  // namespace
}  // namespace spud::compress::testing
