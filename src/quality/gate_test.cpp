// SPDX-License-Identifier: Apache-2.0
#include "quality/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quality/testing.hpp"

namespace spud::quality {
namespace {

using testing::FakeScorer;
using ::testing::HasSubstr;

// Budgets for the fake model, whose noise costs what the comments say.
Budget test_budget() {
  Budget budget;
  budget.name = "test";
  budget.ppl_ratio_max = 1.03;
  budget.kld_mean_max = 0.02;
  budget.top1_min = 0.90;
  return budget;
}

struct Bench {
  SequenceSet set = testing::make_sequences(36);
  FakeScorer original{FakeScorer::Options{}};
  ReferenceLogits reference{original, 1 << 30};
  concurrency::ThreadPool pool{1};

  GateInputs inputs(engine::Scorer& candidate) {
    return {.validation = &set,
            .original = &reference,
            .candidate = &candidate,
            .pool = &pool,
            .original_digest = "original",
            .candidate_digest = "candidate",
            .tokenizer_digest = "tokenizer",
            .candidate_tokenizer_digest = "tokenizer"};
  }
};

const Finding& find(const Verdict& verdict, std::string_view metric) {
  for (const Finding& f : verdict.findings) {
    if (f.metric == metric) return f;
  }
  ADD_FAILURE() << "no finding " << metric;
  static const Finding kNone;
  return kNone;
}

TEST(Gate, PassesAGoodCandidateAtTheFirstLook) {
  Bench bench;
  FakeScorer candidate({.noise = 0.05});  // divergence about 0.001
  const auto result = run_gate(test_budget(), bench.inputs(candidate));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict.kind, VerdictKind::kPass) << result->verdict.sentence;
  EXPECT_EQ(result->verdict.look, 0U);
  EXPECT_EQ(result->verdict.sequences, 12);
  EXPECT_TRUE(find(result->verdict, "kld_p99").watched);
}

TEST(Gate, FailsABadCandidateAtTheFirstLookAndSaysWhy) {
  Bench bench;
  FakeScorer candidate({.noise = 0.8});
  const auto result = run_gate(test_budget(), bench.inputs(candidate));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict.kind, VerdictKind::kFail);
  EXPECT_EQ(result->verdict.look, 0U);
  EXPECT_THAT(result->verdict.sentence, HasSubstr("limit"));
  EXPECT_EQ(find(result->verdict, "kld_mean").kind, VerdictKind::kFail);
}

TEST(Gate, DrawsMoreWhileUndecidedAndNeverPassesABorderlineCandidate) {
  Bench bench;
  FakeScorer candidate({.noise = 0.2});  // divergence about 0.02: at the margin
  Budget budget = test_budget();
  budget.top1_min.reset();
  budget.ppl_ratio_max.reset();
  FakeScorer probe({.noise = 0.2});
  Measurement m;
  ASSERT_TRUE(measure(bench.set, 36, bench.reference, probe, bench.pool, m));
  budget.kld_mean_max = m.kld_mean();  // exactly at the margin: can not be decided
  const auto result = run_gate(budget, bench.inputs(candidate));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict.kind, VerdictKind::kInconclusive);
  EXPECT_EQ(result->verdict.look, 2U);
  EXPECT_EQ(result->verdict.sequences, 36);
}

TEST(Gate, SharesAlphaOverTheLooks) {
  Bench bench;
  FakeScorer candidate({.noise = 0.05});
  const auto three = run_gate(test_budget(), bench.inputs(candidate));
  EXPECT_NEAR(three->verdict.alpha_of_look, 0.0232, 0.001);
  Budget one_look = test_budget();
  one_look.looks = {1.0};
  EXPECT_DOUBLE_EQ(run_gate(one_look, bench.inputs(candidate))->verdict.alpha_of_look, 0.05);
}

TEST(Gate, CallsAnImplausibleGainAnomalous) {
  Bench bench;
  FakeScorer leaking({.leak = 0.3});
  const auto result = run_gate(test_budget(), bench.inputs(leaking));
  EXPECT_EQ(result->verdict.kind, VerdictKind::kAnomalous) << result->verdict.sentence;
  EXPECT_THAT(result->verdict.sentence, HasSubstr("leak"));
}

TEST(Gate, RefusesWhatCouldNotBeMeasured) {
  Bench bench;
  FakeScorer broken({.nan_at_call = 3});
  const auto result = run_gate(test_budget(), bench.inputs(broken));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict.kind, VerdictKind::kFail);
  EXPECT_THAT(result->verdict.sentence, HasSubstr("NaN"));
  FakeScorer stops({.stop_after_call = 2});
  EXPECT_EQ(run_gate(test_budget(), bench.inputs(stops))->verdict.kind, VerdictKind::kFail);
}

TEST(Gate, StopsWhenAsked) {
  Bench bench;
  FakeScorer candidate({});
  auto inputs = bench.inputs(candidate);
  inputs.on_progress = [](const MeasureProgress&) { return false; };
  const auto result = run_gate(test_budget(), inputs);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
}

TEST(Gate, LimitsWhatOneStepMayLoseAgainstTheLastAccepted) {
  Bench bench;
  FakeScorer accepted({.noise = 0.05});
  auto first = run_gate(test_budget(), bench.inputs(accepted));
  ASSERT_EQ(first->verdict.kind, VerdictKind::kPass);
  FakeScorer worse({.noise = 0.14});  // within the budget against the original
  Budget budget = test_budget();
  budget.ppl_ratio_max = 1.5;
  budget.kld_mean_max = 0.2;
  budget.top1_min = 0.5;
  budget.step_ppl_ratio_max = 1.0001;
  auto inputs = bench.inputs(worse);
  inputs.last_accepted = &first->measurement;
  const auto second = run_gate(budget, inputs);
  EXPECT_NE(second->verdict.kind, VerdictKind::kPass) << second->verdict.sentence;
  budget.step_ppl_ratio_max = 1.4;
  EXPECT_EQ(run_gate(budget, inputs)->verdict.kind, VerdictKind::kPass);
}

// A measurement that passes, and the evidence that goes with it; tests break one thing each.
struct Case {
  Measurement measurement;
  Evidence evidence;
  Budget budget = test_budget();

  Case() {
    measurement = {.sequences_digest = "text",
                   .reference_digest = "original",
                   .candidate_digest = "file",
                   .tokenizer_digest = "tokenizer"};
    std::mt19937_64 random(2);
    std::normal_distribution<double> normal(0, 0.1);
    for (int i = 0; i < 20; ++i) {
      const double before = 300 + 30 * normal(random);
      measurement.sequences.push_back({.key = static_cast<std::uint64_t>(i),
                                       .tokens = 100,
                                       .nll_reference = before,
                                       .nll_candidate = before + 0.4 + normal(random),
                                       .kld = 0.4 + 0.05 * normal(random),
                                       .top1_same = 96 + i % 3});
    }
    measurement.token_kld.assign(2000, 0.004F);
    evidence = {.candidate = &measurement,
                .expected_sequences_digest = "text",
                .expected_reference_digest = "original",
                .expected_candidate_digest = "file",
                .expected_tokenizer_digest = "tokenizer",
                .expected_tokens = 2000};
  }
  Verdict decide_now() const { return decide(budget, evidence, 0); }
};

TEST(Decide, PassesTheSoundCase) {
  const Case c;
  EXPECT_EQ(c.decide_now().kind, VerdictKind::kPass) << c.decide_now().sentence;
}

void expect_refused(const Case& c, std::string_view reason) {
  const Verdict verdict = c.decide_now();
  EXPECT_EQ(verdict.kind, VerdictKind::kFail);
  ASSERT_FALSE(verdict.refusals.empty()) << verdict.sentence;
  EXPECT_THAT(verdict.sentence, HasSubstr(std::string(reason)));
}

TEST(Decide, RefusesMissingMeasurement) {
  Case c;
  c.evidence.candidate = nullptr;
  expect_refused(c, "not measured");
}

TEST(Decide, RefusesOtherText) {
  Case c;
  c.evidence.expected_sequences_digest = "another text";
  expect_refused(c, "validation text differs");
}

TEST(Decide, RefusesOtherOriginalFileOrTokenizer) {
  Case original;
  original.measurement.reference_digest = "another";
  expect_refused(original, "original model differs");
  Case file;
  file.measurement.candidate_digest = "in-memory model";
  expect_refused(file, "candidate file differs");
  Case tokenizer;
  tokenizer.measurement.tokenizer_digest = "another";
  expect_refused(tokenizer, "tokenizer differs");
}

TEST(Decide, RefusesAnotherNumberOfPredictions) {
  Case c;
  c.evidence.expected_tokens = 2001;
  expect_refused(c, "2000 predictions were measured instead of 2001");
  Case tail;
  tail.measurement.token_kld.pop_back();
  expect_refused(tail, "1999");
}

TEST(Decide, RefusesNanAndImpossibleNumbers) {
  Case nan;
  nan.measurement.sequences[4].kld = std::numeric_limits<double>::quiet_NaN();
  expect_refused(nan, "sequence 5");
  Case more_than_all;
  more_than_all.measurement.sequences[0].top1_same = 101;
  expect_refused(more_than_all, "sequence 1");
}

TEST(Decide, RefusesAMissingMetricThatTheBudgetLimits) {
  Case c;
  c.budget.mcq_drop_max = 0.02;
  expect_refused(c, "no questions were answered");
}

TEST(Decide, RefusesOtherQuestions) {
  Case c;
  c.budget.mcq_drop_max = 0.5;
  const std::vector<ChoiceResult> before{{.question_id = "a", .correct = true}};
  const std::vector<ChoiceResult> after{{.question_id = "b", .correct = true}};
  c.evidence.reference_choices = before;
  c.evidence.candidate_choices = after;
  expect_refused(c, "'b' instead of 'a'");
  c.evidence.candidate_choices = {};
  expect_refused(c, "0 questions were answered instead of 1");
}

TEST(Decide, DecidesMultipleChoiceByPairs) {
  std::vector<ChoiceResult> before;
  std::vector<ChoiceResult> after;
  for (int i = 0; i < 100; ++i) {
    before.push_back({.question_id = fmt::format("{}", i), .correct = i < 60});
    after.push_back({.question_id = fmt::format("{}", i), .correct = i < 30});
  }
  Case c;
  c.budget.mcq_drop_max = 0.05;
  c.evidence.reference_choices = before;
  c.evidence.candidate_choices = after;
  EXPECT_EQ(c.decide_now().kind, VerdictKind::kFail);
  EXPECT_NEAR(find(c.decide_now(), "mcq_drop").estimate, 0.3, 1e-12);
  c.evidence.candidate_choices = before;
  EXPECT_EQ(find(c.decide_now(), "mcq_drop").estimate, 0);
}

TEST(Decide, RefusesALastAcceptedOfOtherTexts) {
  Case c;
  Measurement accepted = c.measurement;
  c.evidence.last_accepted = &accepted;
  EXPECT_EQ(c.decide_now().kind, VerdictKind::kPass);
  accepted.sequences[2].key = 999;
  expect_refused(c, "sequence 3 of the last accepted");
}

TEST(Decide, CallsContradictionsAnomalous) {
  Case negative;
  for (auto& s : negative.measurement.sequences) s.kld = -0.5;
  EXPECT_EQ(negative.decide_now().kind, VerdictKind::kAnomalous);
  Case zero;
  for (auto& s : zero.measurement.sequences) s.kld = 0;
  EXPECT_EQ(zero.decide_now().kind, VerdictKind::kAnomalous);
}

TEST(Decide, IsNotFooledByABudgetWithoutLimits) {
  Case c;
  c.budget = Budget{.name = "empty"};
  EXPECT_EQ(c.decide_now().kind, VerdictKind::kInconclusive);
}

TEST(Budgets, AreFoundByNameAndSuggested) {
  const auto int8 = find_budget("int8");
  ASSERT_TRUE(int8);
  EXPECT_EQ(*int8->ppl_ratio_max, 1.01);
  EXPECT_EQ(*int8->top1_min, 0.94);
  EXPECT_EQ(*find_budget("int4")->kld_mean_max, 0.10);
  EXPECT_THAT(find_budget("int5").error().message(), HasSubstr("int"));
}

TEST(Instrument, AcceptsAModelAgainstItselfAndRefusesAnother) {
  Bench bench;
  FakeScorer again({});
  EXPECT_TRUE(check_instrument(bench.set, 3, bench.reference, again, bench.pool));
  FakeScorer noisy({.noise = 0.0001});
  const auto broken = check_instrument(bench.set, 3, bench.reference, noisy, bench.pool);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), HasSubstr("instrument is broken"));
}

TEST(Power, SaysWhenTheTextCanNotDecide) {
  const auto few = testing::make_sequences(3);
  const auto budget = *find_budget("int8");
  const auto findings = check_power(budget, few);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_FALSE(findings[0].sufficient);
  EXPECT_THAT(findings[0].sentence, HasSubstr("cannot decide"));
  SequenceSet many = few;
  for (int i = 0; i < 200; ++i) {
    Sequence sequence{.id = "x", .tokens = std::vector<TokenId>(256, 1), .first_scored = 8};
    many.sequences.push_back(sequence);
  }
  EXPECT_TRUE(check_power(budget, many)[0].sufficient);
}

}  // namespace
}  // namespace spud::quality
