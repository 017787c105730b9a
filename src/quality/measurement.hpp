// SPDX-License-Identifier: Apache-2.0
// One model against another on the same tokens: negative log-likelihood of both, Kullback-Leibler
// divergence over the whole vocabulary and agreement of the most likely token, summed per sequence
// so that the gate can resample sequences. Exact: 32-bit logits, nothing stored in 16 bits, sums in
// double; a model against itself gives a divergence of exactly zero.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "concurrency/thread_pool.hpp"
#include "engine/scorer.hpp"
#include "quality/dataset.hpp"

namespace spud::quality {

// Sums over the scored tokens of one sequence. nats.
struct SequenceMeasure {
  std::uint64_t key = 0;  // of the sequence's tokens: only equal keys are paired
  std::int64_t tokens = 0;
  double nll_reference = 0;
  double nll_candidate = 0;
  double kld = 0;  // KL(reference || candidate)
  std::int64_t top1_same = 0;
};

struct Measurement {
  // Which data and whose weights: compared before any number is.
  std::string sequences_digest;  // of the sequences measured so far
  std::string reference_digest;  // tensor digests, set by the caller ("" = not a file)
  std::string candidate_digest;
  std::string tokenizer_digest;
  std::vector<SequenceMeasure> sequences;
  std::vector<float> token_kld;  // one per scored token, in order, for the tail

  std::int64_t num_tokens() const noexcept;
  double perplexity_reference() const noexcept;  // NaN when nothing was measured
  double perplexity_candidate() const noexcept;
  double kld_mean() const noexcept;
  double kld_quantile(double q) const;
  double top1_share() const noexcept;
};

// The reference's logits of the sequences seen, up to a byte limit; what does not fit is computed
// again. One per reference and sequence set; not thread-safe.
class ReferenceLogits {
 public:
  // `reference` must outlive it. The limit covers the kept logits only; one sequence more is always
  // held while it is compared.
  ReferenceLogits(engine::Scorer& reference, std::uint64_t limit_bytes)
      : reference_(&reference), limit_bytes_(limit_bytes) {}

  // [num_scored, vocabulary], valid until the next call.
  [[nodiscard]] Result<std::span<const float>> rows_of(const Sequence& sequence);
  std::int64_t vocabulary_size() const { return reference_->vocabulary_size(); }
  std::uint64_t kept_bytes() const noexcept { return kept_bytes_; }

 private:
  struct Entry {
    std::string key;  // digest of the sequence
    std::vector<float> rows;
  };
  engine::Scorer* reference_;
  std::uint64_t limit_bytes_;
  std::uint64_t kept_bytes_ = 0;
  std::vector<Entry> entries_;
  std::vector<float> scratch_;
};

struct MeasureProgress {
  std::int64_t sequences_done = 0;
  std::int64_t sequences_total = 0;
  std::int64_t tokens_done = 0;
};
// Return false to stop: measure() answers kCancelled.
using MeasureCallback = std::function<bool(const MeasureProgress&)>;

// Adds sequences [measurement.sequences.size(), up_to) of `set` to `measurement`. `pool` may be the
// scorers' own. Fails when the vocabularies differ or a logit is NaN or infinite (says where).
[[nodiscard]] Result<void> measure(const SequenceSet& set, std::size_t up_to,
                                   ReferenceLogits& reference, engine::Scorer& candidate,
                                   concurrency::ThreadPool& pool, Measurement& measurement,
                                   const MeasureCallback& on_progress = {});

// Perplexity alone: one model, no reference (nll_candidate and tokens are filled).
[[nodiscard]] Result<void> measure_alone(const SequenceSet& set, engine::Scorer& model,
                                         concurrency::ThreadPool& pool, Measurement& measurement,
                                         const MeasureCallback& on_progress = {});

// Multiple choice by log-likelihood: the question, one space, each choice.
struct ChoiceResult {
  std::string question_id;
  bool correct = false;             // by the sum of log-probabilities
  bool correct_normalised = false;  // by the sum divided by the choice's bytes
  std::size_t picked = 0;
};
[[nodiscard]] Result<std::vector<ChoiceResult>> answer_choices(
    std::span<const Question* const> questions, const tokenizer::Tokenizer& tokenizer,
    engine::Scorer& model, const MeasureCallback& on_progress = {});

// Of one token: exact log-sum-exps of both rows. Exposed for tests.
struct RowComparison {
  double nll_reference = 0;
  double nll_candidate = 0;
  double kld = 0;
  bool top1_same = false;
  bool finite = true;
};
RowComparison compare_rows(std::span<const float> reference, std::span<const float> candidate,
                           TokenId target) noexcept;

}  // namespace spud::quality
