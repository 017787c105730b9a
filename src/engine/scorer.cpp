// SPDX-License-Identifier: Apache-2.0
#include "engine/scorer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kvcache/kv_cache.hpp"

namespace spud::engine {
namespace {

using tokenizer::TokenId;

// Rows at a time while no logits are wanted, and floats of logits at a time (64 MB) when they are.
constexpr std::int64_t kChunkRows = 512;
constexpr std::int64_t kMaxLogits = 16 << 20;
constexpr std::int64_t kMinLogitRows = 16;

// Gives the pages back even when the visitor throws.
struct PageLease {
  kvcache::KvCache& cache;
  kvcache::BlockTable table;
  explicit PageLease(kvcache::KvCache& from) : cache(from) {}
  ~PageLease() { cache.release(table); }
  PageLease(const PageLease&) = delete;
  PageLease& operator=(const PageLease&) = delete;
};

class ModelScorer final : public Scorer {
 public:
  ModelScorer(std::shared_ptr<const model::Model> model, concurrency::ThreadPool& pool,
              kernels::KvType kv_type)
      : model_(std::move(model)),
        pool_(pool),
        kv_type_(kv_type),
        workspace_(model_->make_workspace()) {}

  Result<void> score(std::span<const TokenId> tokens, std::int64_t first_position,
                     const LogitsVisitor& visit) override;
  void set_observer(const model::ActivationObserver* observer) override { observer_ = observer; }
  std::int64_t vocabulary_size() const noexcept override {
    return model_->hyper_parameters().vocabulary;
  }

 private:
  Result<void> check(std::span<const TokenId> tokens, std::int64_t first_position) const;
  Result<void> make_room(std::size_t num_positions);
  std::int64_t logit_rows() const;

  std::shared_ptr<const model::Model> model_;
  concurrency::ThreadPool& pool_;
  kernels::KvType kv_type_;
  std::shared_ptr<model::Model::Workspace> workspace_;
  std::unique_ptr<kvcache::KvCache> cache_;  // for the longest text so far
  std::vector<float> logits_;
  const model::ActivationObserver* observer_ = nullptr;
};

Result<void> ModelScorer::check(std::span<const TokenId> tokens,
                                std::int64_t first_position) const {
  const model::HyperParameters& hyper = model_->hyper_parameters();
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (length == 0) return fail(ErrorCode::kInvalidArgument, "the text to score is empty");
  if (length > hyper.context_length) {
    return fail(ErrorCode::kInvalidArgument,
                "the text to score has {} tokens; the model's context is {}", length,
                hyper.context_length);
  }
  if (first_position < 0 || first_position >= length) {
    return fail(ErrorCode::kInvalidArgument,
                "scoring from position {} of a text of {} tokens: nothing to score", first_position,
                length);
  }
  for (const TokenId token : tokens) {
    if (token < 0 || token >= hyper.vocabulary) {
      return fail(ErrorCode::kInvalidArgument, "token {} is not in the vocabulary of {}", token,
                  hyper.vocabulary);
    }
  }
  return {};
}

Result<void> ModelScorer::make_room(std::size_t num_positions) {
  const std::size_t pages = kvcache::pages_for(num_positions);
  if (cache_ != nullptr && cache_->num_pages() >= pages) return {};
  cache_.reset();
  SPUD_TRY(cache_, kvcache::KvCache::create(model_->kv_geometry(kv_type_), pages));
  return {};
}

std::int64_t ModelScorer::logit_rows() const {
  return std::clamp(kMaxLogits / vocabulary_size(), kMinLogitRows, kChunkRows);
}

Result<void> ModelScorer::score(std::span<const TokenId> tokens, std::int64_t first_position,
                                const LogitsVisitor& visit) {
  SPUD_TRY(check(tokens, first_position));
  SPUD_TRY(make_room(tokens.size()));
  PageLease pages(*cache_);
  if (!cache_->grow(pages.table, tokens.size())) {
    return fail(ErrorCode::kInternal, "the scorer's KV cache is too small for {} tokens",
                tokens.size());
  }
  const auto length = static_cast<std::int64_t>(tokens.size());
  const auto vocabulary = static_cast<std::size_t>(vocabulary_size());
  for (std::int64_t begin = 0; begin < length;) {
    const bool wanted = begin >= first_position;
    const std::int64_t limit = wanted ? length : first_position;
    const std::int64_t count = std::min(limit - begin, wanted ? logit_rows() : kChunkRows);
    const std::int64_t num_logits = wanted ? count : 0;
    logits_.resize(static_cast<std::size_t>(num_logits) * vocabulary);
    const model::SequenceSlice slice{
        .tokens = tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
        .first_position = begin,
        .pages = &pages.table,
        .first_logit = count - num_logits};
    model_->forward(std::span(&slice, 1), *cache_, *workspace_, pool_, logits_, observer_);
    for (std::int64_t i = 0; i < num_logits; ++i) {
      visit(begin + i, std::span<const float>(logits_).subspan(
                           static_cast<std::size_t>(i) * vocabulary, vocabulary));
    }
    begin += count;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Scorer>> make_scorer(std::shared_ptr<const model::Model> model,
                                            concurrency::ThreadPool& pool,
                                            kernels::KvType kv_type) {
  if (model == nullptr) return fail(ErrorCode::kInvalidArgument, "no model to score with");
  return std::make_unique<ModelScorer>(std::move(model), pool, kv_type);
}

}  // namespace spud::engine
