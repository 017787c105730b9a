// SPDX-License-Identifier: Apache-2.0
#include "engine/step_runner.hpp"

#include <algorithm>
#include <utility>

namespace spud::engine {

StepRunner::StepRunner(std::shared_ptr<const model::Model> model, kvcache::KvCache& cache,
                       int num_threads, std::int64_t logit_rows)
    : model_(std::move(model)),
      cache_(cache),
      workspace_(model_->make_workspace()),
      pool_(num_threads) {
  // Resident only as far as it is used; growing by copies would need more than that.
  logits_.reserve(static_cast<std::size_t>(logit_rows * model_->hyper_parameters().vocabulary));
}

void StepRunner::run(std::vector<StepShare>& work) {
  for (StepShare& item : work) {
    if (!item.sequence->scores_prompt()) continue;
    // All rows but the one that samples; that one goes with the batch.
    const std::int64_t scored = item.num_tokens - (item.samples ? 1 : 0);
    score_prompt_rows(*item.sequence, scored);
    item.num_tokens -= scored;
  }
  build_batch(work);
  const auto vocabulary = static_cast<std::size_t>(model_->hyper_parameters().vocabulary);
  const std::size_t num_logits = num_logit_rows_ * vocabulary;
  if (logits_.size() < num_logits) logits_.resize(num_logits);
  if (!batch_.empty()) {
    model_->forward(batch_, cache_, *workspace_, pool_, std::span(logits_).first(num_logits));
  }
  for (StepShare& item : work) item.sequence->computed += item.num_tokens;
  sample(work);
}

SampledToken StepRunner::sample_row(const StepShare& share, std::size_t row) {
  return sample_logits(*share.sequence, share.logits_row + row);
}

// Any thread of the pool.
SampledToken StepRunner::sample_logits(Sequence& sequence, std::size_t logits_row) {
  const auto vocabulary = static_cast<std::size_t>(model_->hyper_parameters().vocabulary);
  std::unique_ptr<SamplerScratch> scratch;
  {
    const std::scoped_lock lock(scratch_mutex_);
    if (!idle_scratch_.empty()) {
      scratch = std::move(idle_scratch_.back());
      idle_scratch_.pop_back();
    }
  }
  if (scratch == nullptr) scratch = std::make_unique<SamplerScratch>();
  SampledToken sampled =
      sequence.sample(std::span<const float>(logits_).subspan(logits_row * vocabulary, vocabulary),
                      model_->kernel_table(), *scratch);
  const std::scoped_lock lock(scratch_mutex_);
  idle_scratch_.push_back(std::move(scratch));
  return sampled;
}

void StepRunner::build_batch(std::vector<StepShare>& work) {
  batch_.clear();
  num_logit_rows_ = 0;
  outputs_.clear();
  outputs_.reserve(work.size());  // slices point into it
  for (StepShare& item : work) {
    const std::int64_t count = item.num_tokens;
    if (!item.speculative.empty()) {
      item.logits_row = num_logit_rows_;
      outputs_.push_back({.logits_row = num_logit_rows_, .summary = std::nullopt});
      num_logit_rows_ += item.speculative.size();
      batch_.push_back({.tokens = item.speculative,
                        .first_position = item.sequence->next_position(),
                        .pages = &item.sequence->pages,
                        .first_logit = 0});
      continue;
    }
    Output* output = nullptr;
    if (item.samples) {
      output = &outputs_.emplace_back();
      output->summary = item.sequence->logits_needed();
      if (!output->summary) output->logits_row = num_logit_rows_++;
    }
    if (count == 0) continue;  // scored before, to the last row
    batch_.push_back(
        {.tokens = item.sequence->next_tokens(count),
         .first_position = item.sequence->next_position(),
         .pages = &item.sequence->pages,
         .first_logit = item.samples ? count - 1 : count,
         .summary = output != nullptr && output->summary ? &*output->summary : nullptr});
  }
}

void StepRunner::score_prompt_rows(Sequence& sequence, std::int64_t count) {
  const auto vocabulary = static_cast<std::size_t>(model_->hyper_parameters().vocabulary);
  while (count > 0) {
    const std::int64_t rows = std::min(count, kScoredRows);
    const auto size = static_cast<std::size_t>(rows) * vocabulary;
    if (logits_.size() < size) logits_.resize(size);
    const std::int64_t first = sequence.computed;
    const model::SequenceSlice slice{.tokens = sequence.next_tokens(rows),
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
    sequence.computed += rows;
    count -= rows;
  }
}

void StepRunner::sample(std::vector<StepShare>& work) {
  sampling_.clear();
  for (StepShare& item : work) {
    if (item.samples) sampling_.push_back(&item);
  }
  pool_.parallel_for(
      static_cast<std::int64_t>(sampling_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto index = static_cast<std::size_t>(i);
          StepShare& item = *sampling_[index];
          const Output& output = outputs_[index];
          item.sampled = output.summary ? item.sequence->sample(*output.summary)
                                        : sample_logits(*item.sequence, output.logits_row);
        }
      });
}

}  // namespace spud::engine
