// SPDX-License-Identifier: Apache-2.0
#include "quality/measurement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "quality/row_math.hpp"
#include "quality/testing.hpp"

namespace spud::quality {
namespace {

using testing::FakeScorer;
using ::testing::HasSubstr;

std::vector<float> random_row(std::size_t size, std::uint64_t seed, double spread = 4) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<float> row(size);
  for (float& x : row) x = static_cast<float>(normal(random));
  return row;
}

double exact_log_sum_exp(std::span<const float> row) {
  long double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<long double>(x));
  return static_cast<double>(std::log(sum));
}

TEST(RowMath, LogSumExpIsExactForEverySize) {
  for (const std::size_t size : {1U, 2U, 15U, 16U, 17U, 1000U, 49152U}) {
    const auto row = random_row(size, size);
    const auto sums = internal::sum_row(row);
    EXPECT_TRUE(sums.finite);
    EXPECT_NEAR(sums.log_sum_exp, exact_log_sum_exp(row), 2e-7) << size;
    EXPECT_EQ(sums.max, *std::ranges::max_element(row));
  }
}

TEST(RowMath, HandlesExtremeLogits) {
  std::vector<float> row(40, -1e30F);
  row[7] = 1000;
  EXPECT_NEAR(internal::sum_row(row).log_sum_exp, 1000, 1e-9);
  EXPECT_EQ(internal::sum_row(row).argmax, 7U);
  row[7] = row[9] = 5;
  EXPECT_EQ(internal::sum_row(row).argmax, 7U) << "the first of equals";
}

TEST(RowMath, FindsNanAndInfinityAnywhere) {
  for (const std::size_t at : {0U, 20U, 32U}) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
      auto row = random_row(33, 1);
      row[at] = bad;
      EXPECT_FALSE(internal::sum_row(row).finite) << at;
    }
  }
  EXPECT_FALSE(internal::sum_row({}).finite);
}

TEST(CompareRows, MatchesTheDefinition) {
  const auto p = random_row(1003, 3);
  auto q = p;
  const auto noise = random_row(1003, 4, 0.1);
  for (std::size_t i = 0; i < q.size(); ++i) q[i] += noise[i];
  const double lp = exact_log_sum_exp(p);
  const double lq = exact_log_sum_exp(q);
  double kld = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double a = static_cast<double>(p[i]) - lp;
    kld += std::exp(a) * (a - (static_cast<double>(q[i]) - lq));
  }
  const auto row = compare_rows(p, q, 12);
  EXPECT_NEAR(row.kld, kld, 1e-8);
  EXPECT_NEAR(row.nll_reference, lp - static_cast<double>(p[12]), 1e-6);
  EXPECT_NEAR(row.nll_candidate, lq - static_cast<double>(q[12]), 1e-6);
}

TEST(CompareRows, GivesExactlyZeroForEqualRowsAndForShiftedOnesNearly) {
  const auto p = random_row(5000, 9);
  const auto same = compare_rows(p, p, 1);
  EXPECT_EQ(same.kld, 0.0);
  EXPECT_TRUE(same.top1_same);
  auto shifted = p;
  for (float& x : shifted) x += 4;  // softmax does not see it
  EXPECT_NEAR(compare_rows(p, shifted, 1).kld, 0, 1e-6);
}

TEST(Measure, OfAModelAgainstItselfIsExactlyZero) {
  const auto set = testing::make_sequences(4);
  FakeScorer original({});
  FakeScorer again({});
  ReferenceLogits reference(original, 1 << 30);
  concurrency::ThreadPool pool(2);
  Measurement m;
  ASSERT_TRUE(measure(set, set.sequences.size(), reference, again, pool, m));
  EXPECT_EQ(m.kld_mean(), 0);
  EXPECT_EQ(m.top1_share(), 1);
  EXPECT_EQ(m.perplexity_reference(), m.perplexity_candidate());
  EXPECT_EQ(m.num_tokens(), set.num_scored());
  EXPECT_EQ(m.sequences_digest, set.digest);
}

TEST(Measure, DoesNotDependOnTheNumberOfThreads) {
  const auto set = testing::make_sequences(3);
  std::vector<double> results;
  for (const int threads : {1, 3}) {
    FakeScorer original({});
    FakeScorer candidate({.noise = 0.3});
    ReferenceLogits reference(original, 0);
    concurrency::ThreadPool pool(threads);
    Measurement m;
    ASSERT_TRUE(measure(set, 3, reference, candidate, pool, m));
    results.push_back(m.kld_mean());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_GT(results[0], 0);
}

TEST(Measure, AloneGivesTheSamePerplexityAsCompared) {
  const auto set = testing::make_sequences(3);
  FakeScorer original({});
  FakeScorer candidate({.noise = 0.3});
  ReferenceLogits reference(original, 0);
  concurrency::ThreadPool pool(1);
  Measurement compared;
  Measurement alone;
  ASSERT_TRUE(measure(set, 3, reference, candidate, pool, compared));
  ASSERT_TRUE(measure_alone(set, candidate, pool, alone));
  EXPECT_DOUBLE_EQ(compared.perplexity_candidate(), alone.perplexity_candidate());
}

TEST(Measure, GoesOnWhereItStopped) {
  const auto set = testing::make_sequences(6);
  FakeScorer original({});
  FakeScorer candidate({.noise = 0.3});
  ReferenceLogits reference(original, 1 << 30);
  concurrency::ThreadPool pool(1);
  Measurement in_steps;
  Measurement at_once;
  ASSERT_TRUE(measure(set, 2, reference, candidate, pool, in_steps));
  ASSERT_TRUE(measure(set, 6, reference, candidate, pool, in_steps));
  ASSERT_TRUE(measure(set, 6, reference, candidate, pool, at_once));
  EXPECT_EQ(in_steps.kld_mean(), at_once.kld_mean());
  EXPECT_EQ(in_steps.sequences_digest, set.digest);
}

TEST(ReferenceLogits, KeepWithinTheLimitAndComputeTheRestAgain) {
  const auto set = testing::make_sequences(3);
  FakeScorer original({});
  const auto one = static_cast<std::uint64_t>(set.sequences[0].num_scored()) * 64 * sizeof(float);
  ReferenceLogits reference(original, one + 10);
  const auto first = *reference.rows_of(set.sequences[0]);
  const float value = first[5];
  ASSERT_TRUE(reference.rows_of(set.sequences[1]));
  ASSERT_TRUE(reference.rows_of(set.sequences[0]));
  EXPECT_EQ(original.calls(), 2) << "the first was kept";
  ASSERT_TRUE(reference.rows_of(set.sequences[1]));
  EXPECT_EQ(original.calls(), 3) << "the second did not fit";
  EXPECT_EQ((*reference.rows_of(set.sequences[0]))[5], value);
  EXPECT_LE(reference.kept_bytes(), one + 10);
}

TEST(Measure, RefusesNanLogitsAndSaysWhere) {
  const auto set = testing::make_sequences(3);
  FakeScorer original({});
  FakeScorer broken({.nan_at_call = 1});
  ReferenceLogits reference(original, 0);
  concurrency::ThreadPool pool(1);
  Measurement m;
  const auto result = measure(set, 3, reference, broken, pool, m);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("'text 2'"));
  EXPECT_THAT(result.error().message(), HasSubstr("candidate"));
}

TEST(Measure, RefusesMissingPredictionsAndOtherVocabularies) {
  const auto set = testing::make_sequences(2);
  FakeScorer original({});
  ReferenceLogits reference(original, 0);
  concurrency::ThreadPool pool(1);
  FakeScorer stops({.stop_after_call = 0});
  Measurement m;
  EXPECT_FALSE(measure(set, 2, reference, stops, pool, m));
  FakeScorer wider({.vocabulary = 65});
  EXPECT_THAT(measure(set, 2, reference, wider, pool, m).error().message(), HasSubstr("65"));
}

TEST(Measure, StopsWhenAsked) {
  const auto set = testing::make_sequences(4);
  FakeScorer original({});
  FakeScorer candidate({});
  ReferenceLogits reference(original, 0);
  concurrency::ThreadPool pool(1);
  Measurement m;
  const auto result = measure(set, 4, reference, candidate, pool, m,
                              [](const MeasureProgress& p) { return p.sequences_done < 2; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(m.sequences.size(), 2U);
}

// Prefers a token whatever came before.
class BiasedScorer final : public engine::Scorer {
 public:
  explicit BiasedScorer(TokenId favourite) : favourite_(favourite) {}
  Result<void> score(std::span<const TokenId> tokens, std::int64_t first,
                     const engine::LogitsVisitor& visit) override {
    std::vector<float> logits(256, 0.0F);
    logits[static_cast<std::size_t>(favourite_)] = 3;
    for (std::int64_t p = first; p < std::ssize(tokens); ++p) visit(p, logits);
    return {};
  }
  void set_observer(const model::ActivationObserver*) override {}
  std::int64_t vocabulary_size() const noexcept override { return 256; }

 private:
  TokenId favourite_;
};

TEST(AnswerChoices, PicksTheLikeliestContinuation) {
  const Question question{.id = "q", .question = "Say", .choices = {"b", "aaaa", "c"}, .answer = 2};
  const Question* const asked[] = {&question};
  const testing::ByteTokenizer tokenizer;
  BiasedScorer likes_c('c');
  const auto right = answer_choices(asked, tokenizer, likes_c);
  ASSERT_TRUE(right) << right.error().message();
  EXPECT_TRUE(right->front().correct);
  BiasedScorer likes_a('a');  // four a's: likeliest per byte and, at +3 each, in sum? ln Z decides
  const auto wrong = answer_choices(asked, tokenizer, likes_a);
  EXPECT_FALSE(wrong->front().correct_normalised);
  EXPECT_FALSE(wrong->front().correct);
}

}  // namespace
}  // namespace spud::quality
