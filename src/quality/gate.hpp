// SPDX-License-Identifier: Apache-2.0
// Decides whether a candidate is still good enough. Statistics, not a bare difference: every metric
// gets a one-sided interval by resampling sequences and is compared with a stated margin, against
// the original (what may be lost in all) and against the last accepted model (what one step may
// lose). What can not be measured is refused, never passed.
//
// All metrics must pass, each at level alpha (an intersection-union test): the chance to accept a
// candidate that is worse than its margin in any metric is at most alpha, without a correction.
// Several looks at growing data share alpha (sequential boundaries, stats/sequential.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "quality/measurement.hpp"

namespace spud::quality {

// How much may be lost. A limit that is absent is measured and reported ("watched"), not decided.
struct Budget {
  std::string name;
  std::optional<double> ppl_ratio_max;  // upper bound of perplexity / original's
  std::optional<double> kld_mean_max;   // upper bound of mean KL(original || candidate), nats
  std::optional<double> top1_min;       // lower bound of the share of equal most likely tokens
  std::optional<double> kld_p99_max;
  std::optional<double> mcq_drop_max;        // upper bound of the loss of accuracy, 0.02 = 2 points
  std::optional<double> step_ppl_ratio_max;  // against the last accepted
  double alpha = 0.05;
  std::vector<double> looks = {1.0 / 3, 2.0 / 3, 1.0};  // shares of the sequences
};
// "fp16", "int8", "int4"; an unknown name lists them.
[[nodiscard]] Result<Budget> find_budget(std::string_view name);
std::span<const std::string_view> budget_names() noexcept;

enum class VerdictKind { kPass, kFail, kInconclusive, kAnomalous };
std::string_view to_string(VerdictKind kind) noexcept;  // "PASS", ...

struct Finding {
  std::string metric;   // "ppl_ratio", "kld_mean", "top1_agreement", "kld_p99", "mcq_drop", ...
  std::string against;  // "original" or "last accepted"
  VerdictKind kind = VerdictKind::kInconclusive;
  bool watched = false;  // no limit: does not decide
  double estimate = 0, lower = 0, upper = 0;
  double limit = 0;      // NaN when watched
  std::string sentence;  // for a person: figure, interval, limit, what follows
};

struct Verdict {
  VerdictKind kind = VerdictKind::kFail;
  std::string sentence;               // one line: the verdict and its first reason
  std::vector<std::string> refusals;  // why it could not be measured (then kind is kFail)
  std::vector<Finding> findings;
  std::size_t look = 0;  // 0-based; of `looks`
  std::size_t looks = 1;
  double alpha_of_look = 0;  // one-sided, after sharing
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
};

// What there is to decide on. A null or absent part that the budget has a limit for is a refusal.
struct Evidence {
  const Measurement* candidate = nullptr;      // candidate against the original
  const Measurement* last_accepted = nullptr;  // last accepted against the original (null at first)
  std::string expected_sequences_digest;       // of the sequences that should have been measured
  std::string expected_reference_digest;       // tensor digest of the original
  std::string expected_candidate_digest;       // tensor digest of the file that was reloaded
  std::string expected_tokenizer_digest;
  std::int64_t expected_tokens = 0;
  std::span<const ChoiceResult> reference_choices;  // same questions, same order
  std::span<const ChoiceResult> candidate_choices;
};

// Pure. `look` counts from 0; the last look never says INCONCLUSIVE for lack of data to come: the
// caller treats it as not accepted.
[[nodiscard]] Verdict decide(const Budget& budget, const Evidence& evidence, std::size_t look);

// The whole procedure for one candidate: measure, decide, draw more while INCONCLUSIVE.
struct GateInputs {
  const SequenceSet* validation = nullptr;
  ReferenceLogits* original = nullptr;
  engine::Scorer* candidate = nullptr;
  concurrency::ThreadPool* pool = nullptr;
  const Measurement* last_accepted = nullptr;  // null at the first step
  std::string original_digest, candidate_digest, tokenizer_digest;
  std::string candidate_tokenizer_digest;
  std::span<const ChoiceResult> reference_choices, candidate_choices;  // empty = not measured
  MeasureCallback on_progress;
};
struct GateResult {
  Verdict verdict;
  Measurement measurement;  // keep it: it is `last_accepted` of the next step
};
// Errors: only a cancelled run and broken callers. A candidate that can not be measured is a
// verdict, not an error.
[[nodiscard]] Result<GateResult> run_gate(const Budget& budget, const GateInputs& inputs);

// The instrument checks itself: original against original on a few sequences must give a
// divergence of exactly zero and full agreement. An error names what it gave instead.
[[nodiscard]] Result<void> check_instrument(const SequenceSet& validation, std::size_t sequences,
                                            ReferenceLogits& original,
                                            engine::Scorer& original_again,
                                            concurrency::ThreadPool& pool);

// Can this set decide at all? Before the first measurement from typical spreads of the budget's
// kind, afterwards from those of `pilot`.
struct PowerFinding {
  std::string metric;
  double detectable = 0;  // the true effect that passes with 80 % probability at most this near
  double margin = 0;
  bool sufficient = false;
  std::string sentence;
};
[[nodiscard]] std::vector<PowerFinding> check_power(const Budget& budget, const SequenceSet& set,
                                                    const Measurement* pilot = nullptr);

}  // namespace spud::quality
