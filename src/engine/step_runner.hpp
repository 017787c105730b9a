// SPDX-License-Identifier: Apache-2.0
// Turns a StepPlan into one forward and its samples: builds the batch, runs the model, samples all
// rows in parallel. Knows nothing of queues, clients or time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "concurrency/thread_pool.hpp"
#include "engine/sequence.hpp"
#include "kvcache/kv_cache.hpp"
#include "model/model.hpp"

namespace spud::engine {

// A sequence's share of a step: its next tokens. `sampled` is filled when samples is true.
struct StepShare {
  Sequence* sequence = nullptr;
  std::int64_t num_tokens = 0;
  bool samples = false;
  SampledToken sampled;
  // While speculating: its last token and guesses of what follows, a row each, all of which may be
  // sampled. num_tokens is 1, for the token that is certain.
  std::vector<TokenId> speculative;
  std::size_t logits_row = 0;  // of the first of them
  std::int64_t num_guesses() const noexcept {
    return speculative.empty() ? 0 : std::ssize(speculative) - 1;
  }
};

// Engine thread only.
class StepRunner {
 public:
  // Prompt log-probs need the logits of every row, a megabyte each for large vocabularies.
  static constexpr std::int64_t kScoredRows = 16;
  // With more rows a step is bound by computing, and a wrong guess costs as much as a right one.
  static constexpr std::int64_t kMostSpeculating = 4;

  // `logit_rows`: most rows of one step whose full logits are wanted.
  StepRunner(std::shared_ptr<const model::Model> model, kvcache::KvCache& cache, int num_threads,
             std::int64_t logit_rows);

  // Advances `computed` of the sequences; tokens are sampled, not yet accepted.
  void run(std::vector<StepShare>& work);
  // From the logits of a later speculative row of the latest run, once all before it are accepted.
  SampledToken sample_row(const StepShare& share, std::size_t row);

  // Computes as many rows of nothing in particular, for the time it takes: `streams` sequences of
  // one token that sample, and `rows` of one prompt. False when there are no pages for it.
  bool rehearse(std::int64_t streams, std::int64_t rows);

 private:
  void score_prompt_rows(Sequence& sequence, std::int64_t count);
  void build_batch(std::vector<StepShare>& work);
  void sample(std::vector<StepShare>& work);
  SampledToken sample_logits(Sequence& sequence, std::size_t logits_row);

  std::shared_ptr<const model::Model> model_;
  kvcache::KvCache& cache_;
  std::shared_ptr<model::Model::Workspace> workspace_;
  std::vector<model::SequenceSlice> batch_;
  // One for every share that samples: where its logits are, or what is kept of them.
  struct Output {
    std::size_t logits_row = 0;
    std::optional<model::LogitSummary> summary;
  };
  std::vector<Output> outputs_;
  std::size_t num_logit_rows_ = 0;
  std::vector<float> logits_;
  std::vector<StepShare*> sampling_;
  std::mutex scratch_mutex_;                                   // guards the next one
  std::vector<std::unique_ptr<SamplerScratch>> idle_scratch_;  // one for each thread at most
  concurrency::ThreadPool pool_;  // last: its threads use what is above
};

}  // namespace spud::engine
