// SPDX-License-Identifier: Apache-2.0
#include "engine/step_runner.hpp"

#include <algorithm>
#include <utility>

namespace spud::engine {
namespace {

// Prompt log-probs need the logits of every row, a megabyte each for large vocabularies.
constexpr std::int64_t kScoredRows = 16;

}  // namespace

StepRunner::StepRunner(std::shared_ptr<const model::Model> model, kvcache::KvCache& cache,
                       int num_threads)
    : model_(std::move(model)),
      cache_(cache),
      workspace_(model_->make_workspace()),
      pool_(num_threads) {}

void StepRunner::run(std::vector<StepWork>& work) {
  for (StepWork& item : work) {
    if (item.prefill_tokens == 0 || !item.sequence->request().echo_prompt_logprobs) continue;
    // All rows but the one that samples; that one goes with the batch.
    const std::int64_t scored = item.prefill_tokens - (item.samples ? 1 : 0);
    score_prompt_rows(*item.sequence, scored);
    item.prefill_tokens -= scored;
  }
  batch_.clear();
  std::size_t num_logits = 0;
  for (const StepWork& item : work) {
    const bool decode = item.prefill_tokens == 0;
    if (decode && !item.samples) continue;  // scored above, to the last row
    const std::int64_t count = decode ? 1 : item.prefill_tokens;
    batch_.push_back(
        {.tokens = decode ? item.sequence->last_token() : item.sequence->prompt_chunk(count),
         .first_position = item.sequence->next_position(),
         .pages = &item.sequence->pages,
         .first_logit = item.samples ? count - 1 : count});
    num_logits += item.samples ? 1 : 0;
  }
  const auto vocabulary = static_cast<std::size_t>(model_->hyper_parameters().vocabulary);
  if (logits_.size() < num_logits * vocabulary) logits_.resize(num_logits * vocabulary);
  if (!batch_.empty()) {
    model_->forward(batch_, cache_, *workspace_, pool_,
                    std::span(logits_).first(num_logits * vocabulary));
  }
  for (StepWork& item : work) item.sequence->prefilled += item.prefill_tokens;
  sample(work);
}

void StepRunner::score_prompt_rows(Sequence& sequence, std::int64_t count) {
  const auto vocabulary = static_cast<std::size_t>(model_->hyper_parameters().vocabulary);
  while (count > 0) {
    const std::int64_t rows = std::min(count, kScoredRows);
    const auto size = static_cast<std::size_t>(rows) * vocabulary;
    if (logits_.size() < size) logits_.resize(size);
    const std::int64_t first = sequence.prefilled;
    const model::SequenceSlice slice{.tokens = sequence.prompt_chunk(rows),
                                     .first_position = first,
                                     .pages = &sequence.pages,
                                     .first_logit = 0};
    model_->forward(std::span(&slice, 1), cache_, *workspace_, pool_,
                    std::span(logits_).first(size));
    for (std::int64_t i = 0; i < rows; ++i) {
      sequence.score_prompt(
          first + i + 1,
          std::span(logits_).subspan(static_cast<std::size_t>(i) * vocabulary, vocabulary),
          model_->kernel_table());
    }
    sequence.prefilled += rows;
    count -= rows;
  }
}

void StepRunner::sample(std::vector<StepWork>& work) {
  sampling_.clear();
  for (StepWork& item : work) {
    if (item.samples) sampling_.push_back(&item);
  }
  const auto vocabulary = static_cast<std::size_t>(model_->hyper_parameters().vocabulary);
  pool_.parallel_for(
      static_cast<std::int64_t>(sampling_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto index = static_cast<std::size_t>(i);
          StepWork& item = *sampling_[index];
          item.sampled = item.sequence->sample(
              std::span(logits_).subspan(index * vocabulary, vocabulary), model_->kernel_table());
        }
      });
}

}  // namespace spud::engine
