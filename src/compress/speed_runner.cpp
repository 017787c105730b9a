// SPDX-License-Identifier: Apache-2.0
#include "compress/speed_runner.hpp"

#include <chrono>

#include "base/check.hpp"

namespace spud::compress {

Result<SpeedRunner> SpeedRunner::create(std::shared_ptr<const model::Model> model,
                                        concurrency::ThreadPool& pool,
                                        std::span<const model::TokenId> text,
                                        const SpeedPlan& plan) {
  const std::int64_t length = plan.prefill_tokens + plan.decode_tokens;
  const std::int64_t context = model->hyper_parameters().context_length;
  if (text.empty() || length > context) {
    return fail(ErrorCode::kInvalidArgument,
                "speed is to be measured on {} tokens, but the model's context is {}", length,
                context);
  }
  std::vector<model::TokenId> tokens;
  for (std::int64_t i = 0; i < length; ++i) {
    tokens.push_back(text[static_cast<std::size_t>(i) % text.size()]);
  }
  SPUD_TRY(auto cache,
           kvcache::KvCache::create(model->kv_geometry(), kvcache::pages_for(tokens.size())));
  return SpeedRunner(std::move(model), pool, std::move(cache), std::move(tokens),
                     plan.prefill_tokens);
}

SpeedRunner::SpeedRunner(std::shared_ptr<const model::Model> model, concurrency::ThreadPool& pool,
                         std::unique_ptr<kvcache::KvCache> cache,
                         std::vector<model::TokenId> tokens, std::int64_t prefill_tokens)
    : model_(std::move(model)),
      pool_(&pool),
      cache_(std::move(cache)),
      workspace_(model_->make_workspace()),
      tokens_(std::move(tokens)),
      prefill_tokens_(prefill_tokens),
      logits_(static_cast<std::size_t>(model_->hyper_parameters().vocabulary)) {}

double SpeedRunner::timed_forward(kvcache::BlockTable& pages, std::int64_t first,
                                  std::int64_t count) {
  const model::SequenceSlice slice{
      .tokens = std::span<const model::TokenId>(tokens_).subspan(static_cast<std::size_t>(first),
                                                                 static_cast<std::size_t>(count)),
      .first_position = first,
      .pages = &pages,
      .first_logit = count - 1};
  const auto started = std::chrono::steady_clock::now();  // the real one: this measures the machine
  model_->forward(std::span(&slice, 1), *cache_, *workspace_, *pool_, logits_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

Result<SpeedSample> SpeedRunner::run() {
  kvcache::BlockTable pages;
  SPUD_CHECK(cache_->grow(pages, tokens_.size()));
  SpeedSample sample;
  sample.prefill_seconds = timed_forward(pages, 0, prefill_tokens_);
  for (auto at = prefill_tokens_; at < static_cast<std::int64_t>(tokens_.size()); ++at) {
    sample.decode_seconds += timed_forward(pages, at, 1);
  }
  cache_->release(pages);
  return sample;
}

}  // namespace spud::compress
