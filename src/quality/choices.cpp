// SPDX-License-Identifier: Apache-2.0
// Multiple choice: which continuation does the model find likeliest?
#include <algorithm>
#include <cmath>

#include "quality/measurement.hpp"
#include "quality/row_math.hpp"

namespace spud::quality {
namespace {

// log p of the tokens from `begin` on, given those before.
Result<double> log_likelihood(std::span<const TokenId> tokens, std::size_t begin,
                              engine::Scorer& model) {
  double sum = 0;
  bool finite = true;
  SPUD_TRY(model.score(tokens.first(tokens.size() - 1), static_cast<std::int64_t>(begin) - 1,
                       [&](std::int64_t position, std::span<const float> logits) {
                         const auto row = internal::sum_row(logits);
                         const auto next = static_cast<std::size_t>(
                             tokens[static_cast<std::size_t>(position) + 1]);
                         finite = finite && row.finite && next < logits.size();
                         if (finite) sum += static_cast<double>(logits[next]) - row.log_sum_exp;
                       }));
  if (!finite) {
    return fail(ErrorCode::kDataLoss,
                "the model's logits hold NaN or infinity, or its vocabulary "
                "is smaller than the tokenizer's");
  }
  return sum;
}

std::size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

Result<ChoiceResult> answer(const Question& question, const tokenizer::Tokenizer& tokenizer,
                            engine::Scorer& model) {
  const tokenizer::EncodeOptions options{.add_special = true};
  SPUD_TRY(const auto prompt, tokenizer.encode(question.question, options));
  std::vector<double> raw;
  std::vector<double> normalised;
  for (const std::string& choice : question.choices) {
    SPUD_TRY(const auto tokens, tokenizer.encode(question.question + " " + choice, options));
    const std::size_t begin = common_prefix(prompt, tokens);
    if (begin == 0 || begin >= tokens.size()) {
      return fail(ErrorCode::kInvalidArgument, "choice '{}' adds no token to the question", choice);
    }
    SPUD_TRY(const double sum, log_likelihood(tokens, begin, model));
    raw.push_back(sum);
    normalised.push_back(sum / static_cast<double>(choice.size()));
  }
  const auto best = [](const std::vector<double>& values) {
    return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
  };
  return ChoiceResult{.question_id = question.id,
                      .correct = best(raw) == question.answer,
                      .correct_normalised = best(normalised) == question.answer,
                      .picked = best(raw)};
}

}  // namespace

Result<std::vector<ChoiceResult>> answer_choices(std::span<const Question* const> questions,
                                                 const tokenizer::Tokenizer& tokenizer,
                                                 engine::Scorer& model,
                                                 const MeasureCallback& on_progress) {
  std::vector<ChoiceResult> results;
  for (const Question* question : questions) {
    auto result = answer(*question, tokenizer, model);
    if (!result) return fail_within(question->id, std::move(result).error());
    results.push_back(std::move(*result));
    const MeasureProgress progress{std::ssize(results), std::ssize(questions), 0};
    if (on_progress && !on_progress(progress)) {
      return fail(ErrorCode::kCancelled, "the measurement was stopped");
    }
  }
  return results;
}

}  // namespace spud::quality
