// SPDX-License-Identifier: Apache-2.0
// Good files, bad measurements: the chain decides itself and believes no figure whose identity does
// not fit.
#include <gmock/gmock.h>

#include <cmath>

#include "compress/testing/chain_fixture.hpp"
#include "compress/testing/tampering_measurer.hpp"

namespace spud::compress::testing {

struct MeasurementFault {
  const char* name;
  void (*tamper)(Measured&);
  const char* reason;
};
void PrintTo(const MeasurementFault& fault, std::ostream* out) { *out << fault.name; }

namespace {

void swap_validation_set(Measured& m) {
  m.measurement.sequences_digest = "0123456789abcdef of another set";
}
void drop_sequences(Measured& m) { m.measurement.sequences.pop_back(); }
void drop_divergence(Measured& m) { m.measurement.token_kld.clear(); }
void drop_everything(Measured& m) { m.measurement = {}; }
void make_nan(Measured& m) { m.measurement.sequences.front().nll_candidate = std::nan(""); }
void make_better_than_possible(Measured& m) {
  for (auto& sequence : m.measurement.sequences) sequence.nll_candidate *= 0.8;
}
void measure_another_candidate(Measured& m) { m.measurement.candidate_digest = "another file"; }
void measure_against_another_original(Measured& m) {
  m.measurement.reference_digest = "another original";
}
void use_another_tokenizer(Measured& m) { m.measurement.tokenizer_digest = "another tokenizer"; }
void make_much_worse(Measured& m) {
  for (auto& sequence : m.measurement.sequences) sequence.nll_candidate *= 1.5;
}

constexpr MeasurementFault kFaults[] = {
    {"ValidationSetSwapped", &swap_validation_set, "the validation text differs"},
    {"SequencesMissing", &drop_sequences, "predictions were measured instead of"},
    {"DivergenceMissing", &drop_divergence, "the tail of the divergence has 0 values"},
    {"MeasurementEmpty", &drop_everything, "differs"},
    {"NotANumber", &make_nan, "no usable numbers"},
    {"BetterThanPossible", &make_better_than_possible, "not believable"},
    {"OtherCandidate", &measure_another_candidate, "the candidate file differs"},
    {"OtherOriginal", &measure_against_another_original, "the original model differs"},
    {"OtherTokenizer", &use_another_tokenizer, "the tokenizer differs"},
    {"MuchWorse", &make_much_worse, "perplexity over the original"},
};

// Tampers with the second candidate only: the 8-bit step must have been accepted before.
MeasurerFactory tamper_second(void (*change)(Measured&)) {
  auto calls = std::make_shared<int>(0);
  return tamper(make_engine_measurer({.logits_limit_bytes = 1 << 24}),
                {.measured = [calls, change](Measured& m) {
                  if (++*calls == 2) change(m);
                }});
}

constexpr std::string_view kRtnOnly = "int4\n    alternatives: [rtn]";

class MeasurementFaults : public ChainTest,
                          public ::testing::WithParamInterface<MeasurementFault> {};

TEST_P(MeasurementFaults, IsRefusedForItsReasonAndTheArtifactStaysTheLastGoodOne) {
  auto chain = options(recipe_yaml(kRtnOnly), builtin_passes());
  chain.make_measurer = tamper_second(GetParam().tamper);
  const auto journal = run(chain);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->steps[1].status, StepStatus::kDeclined);
  const Attempt& attempt = journal->steps[1].attempts.front();
  EXPECT_EQ(attempt.stage, "quality") << attempt.reason;
  EXPECT_THAT(attempt.reason, ::testing::HasSubstr(GetParam().reason));
  const auto file = formats::ModelFile::open(artifact());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(formats::tensor_digest(**file), journal->steps[0].attempts.front().tensor_digest);
}

INSTANTIATE_TEST_SUITE_P(Planted, MeasurementFaults, ::testing::ValuesIn(kFaults),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(ChainTest, RefusesWhenTheQuestionsTheBudgetLimitsWereNotAnswered) {
  const std::string yaml = recipe_yaml(kRtnOnly);
  auto chain = options(yaml, builtin_passes());
  chain.recipe.steps[1].margin.choice_drop = 0.9;
  chain.make_measurer = tamper_second([](Measured& m) { m.choices.clear(); });
  const auto journal = run(chain);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->steps[1].status, StepStatus::kDeclined);
  EXPECT_THAT(journal->steps[1].attempts.front().reason, ::testing::HasSubstr("questions"));
}

TEST_F(ChainTest, RefusesACandidateThatIsSlowerThanItsRule) {
  auto chain = options(
      recipe_yaml(kRtnOnly,
                  "speed: {pairs: 3, max_pairs: 3, prefill_tokens: 16, decode_tokens: 2}\n"),
      builtin_passes());
  auto calls = std::make_shared<int>(0);
  chain.make_measurer = tamper(make_engine_measurer({}), {.speed = [calls] {
                                 // Floor, int8, then the one that is slow.
                                 const double ratio = ++*calls == 3 ? 0.5 : 1.0;
                                 return SpeedComparison{
                                     .pairs = 3,
                                     .prefill = {.estimate = ratio, .lower = ratio, .upper = ratio},
                                     .decode = {.estimate = 1, .lower = 1, .upper = 1}};
                               }});
  const auto journal = run(chain);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->steps[0].status, StepStatus::kAccepted);
  const Attempt& attempt = journal->steps[1].attempts.front();
  EXPECT_EQ(attempt.stage, "speed") << attempt.reason;
  EXPECT_THAT(attempt.reason, ::testing::HasSubstr("prefill runs at 0.50"));
}

}  // namespace
}  // namespace spud::compress::testing
