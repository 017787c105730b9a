// SPDX-License-Identifier: Apache-2.0
#include "compress/chain.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "compress/testing/chain_fixture.hpp"
#include "compress/testing/tampering_measurer.hpp"
#include "quality/certificate.hpp"

namespace spud::compress::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kRtnOnly = "int4\n    alternatives: [rtn]";

TEST_F(ChainTest, AcceptsGoodStepsAndLeavesACertifiedArtifactAndReports) {
  const auto journal = run(options(recipe_yaml(kRtnOnly), builtin_passes()));
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_TRUE(journal->finished);
  EXPECT_EQ(journal->steps[0].status, StepStatus::kAccepted);
  EXPECT_EQ(journal->steps[1].status, StepStatus::kAccepted)
      << journal->steps[1].attempts.front().reason;
  const auto file = formats::ModelFile::open(artifact());
  ASSERT_TRUE(file) << file.error().message();
  const auto check = quality::check_certificate(**file);
  EXPECT_EQ(check.status, quality::CertificateStatus::kCertified) << check.reason;
  EXPECT_LT((*file)->file_bytes(), journal->original_bytes);
  for (const char* name : {"certificate.json", "report.html", "report.md", "report.json"}) {
    EXPECT_GT(std::filesystem::file_size(folder_ / "out" / name), 100u) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out" / "work"));
}

TEST_F(ChainTest, MixedSearchStaysWithinTheBudgetAndSaysWhatItChose) {
  const auto journal =
      run(options(recipe_yaml("int4\n    alternatives: [mixed]"), builtin_passes()));
  ASSERT_TRUE(journal) << journal.error().message();
  const Attempt& attempt = journal->steps[1].attempts.front();
  EXPECT_EQ(attempt.decision, Decision::kAccepted) << attempt.reason;
  EXPECT_THAT(attempt.note, HasSubstr("tensors at 4 bits"));
}

TEST_F(ChainTest, DeclinesAStepThatNothingPassesAndGoesOnFromTheLastAccepted) {
  auto chain = options(recipe_yaml(kRtnOnly), builtin_passes());
  chain.recipe.steps[1].margin.mean_kld = 1e-8;
  const auto journal = run(chain);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->steps[1].status, StepStatus::kDeclined);
  EXPECT_EQ(journal->accepted.step, 0u);
}

TEST_F(ChainTest, LeavesNoArtifactWhenNothingIsAccepted) {
  auto chain = options(recipe_yaml(kRtnOnly), builtin_passes());
  for (auto& step : chain.recipe.steps) step.margin.mean_kld = 1e-9;
  const auto journal = run(chain);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_TRUE(journal->finished);
  EXPECT_TRUE(journal->artifact_digest.empty());
  EXPECT_FALSE(std::filesystem::exists(artifact()));
}

TEST_F(ChainTest, AQuantisedSourceIsComparedWithItsDequantisedWeights) {
  const model::testing::TinyModelFile quantised{{.weights = tensor::DType::kQ8_0}};
  auto chain = options(recipe_yaml(kRtnOnly), builtin_passes());
  chain.source = quantised.path();
  const auto journal = run(chain);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_TRUE(journal->dequantised);
  EXPECT_GT(journal->original_bytes, journal->steps[0].attempts.front().bytes);
}

// A full disk is nobody's fault but stops the chain; when there is room again it goes on.
TEST_F(ChainTest, StopsWhenResourcesRunOutAndResumesToTheSameBytes) {
  const std::string yaml = recipe_yaml(kRtnOnly);
  ASSERT_TRUE(run(options(yaml, builtin_passes())));
  std::ifstream whole(artifact(), std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(whole), {}};
  std::filesystem::remove_all(folder_ / "out");

  auto calls = std::make_shared<int>(0);
  auto chain = options(yaml, builtin_passes());
  const auto real = chain.make_measurer;
  chain.make_measurer = tamper(real, {.before_measure = [calls]() -> Result<void> {
                                 if (++*calls == 2) {
                                   return fail(ErrorCode::kResourceExhausted, "the disk is full");
                                 }
                                 return {};
                               }});
  const auto stopped = run(chain);
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message(), HasSubstr("the disk is full"));
  const auto between = read_journal(folder_ / "out");
  ASSERT_TRUE(between);
  EXPECT_FALSE(between->finished);
  EXPECT_EQ(between->steps[0].status, StepStatus::kAccepted);

  chain.make_measurer = real;
  ASSERT_TRUE(run(chain));
  std::ifstream resumed(artifact(), std::ios::binary);
  EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(resumed), {}) == expected);
}

TEST_F(ChainTest, RefusesAFolderOfAnotherRecipeOrModel) {
  ASSERT_TRUE(run(options(recipe_yaml(kRtnOnly), builtin_passes())));
  const auto other = run(options(recipe_yaml("int4\n    alternatives: [mixed]"), builtin_passes()));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("another recipe"));
  const model::testing::TinyModelFile stranger{{.weights = tensor::DType::kF16, .seed = 2}};
  auto chain = options(recipe_yaml(kRtnOnly), builtin_passes());
  chain.source = stranger.path();
  const auto moved = run(chain);
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message(), HasSubstr("another model"));
}

TEST_F(ChainTest, OneFolderHoldsOneChainAtATime) {
  std::filesystem::create_directories(folder_ / "out");
  const auto held = FolderLock::acquire(folder_ / "out");
  ASSERT_TRUE(held);
  const auto second = run(options(recipe_yaml(kRtnOnly), builtin_passes()));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message(), HasSubstr("another chain is working"));
}

TEST_F(ChainTest, NoticesThatTheAcceptedArtifactWasChangedFromOutside) {
  auto chain = options(recipe_yaml(kRtnOnly), builtin_passes());
  bool cancelled = false;
  stop_after_first_decision(chain, cancelled);
  const auto stopped = run(chain);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  const auto journal = read_journal(folder_ / "out");
  ASSERT_TRUE(journal);
  std::fstream file(folder_ / "out" / "work" / journal->accepted.file,
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-64, std::ios::end);
  file.write("damage", 6);
  file.close();
  cancelled = false;
  const auto resumed = run(chain);
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message(), HasSubstr("changed from outside"));
}

TEST_F(ChainTest, RunAgainAfterItsEndItOnlyLooksThatTheArtifactIsThere) {
  const auto chain = options(recipe_yaml(kRtnOnly), builtin_passes());
  ASSERT_TRUE(run(chain));
  const auto again = run(chain);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(again->finished);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out" / "work"));
  std::filesystem::remove(artifact());
  const auto gone = run(chain);
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message(), HasSubstr("gone or was changed"));
}

TEST(ReadJournal, SaysWhereThereIsNone) {
  const auto journal = read_journal("/nowhere");
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace spud::compress::testing
