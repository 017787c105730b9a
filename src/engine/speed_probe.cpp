// SPDX-License-Identifier: Apache-2.0
#include "engine/speed_probe.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "model/workspace.hpp"

namespace spud::engine {

Result<std::unique_ptr<SpeedProbe>> SpeedProbe::create(std::shared_ptr<const model::Model> model,
                                                       concurrency::ThreadPool& pool,
                                                       const concurrency::Clock& clock,
                                                       std::int64_t max_streams,
                                                       std::int64_t max_tokens,
                                                       kernels::KvType kv_type) {
  const std::int64_t context = model->hyper_parameters().context_length;
  if (max_streams < 1 || max_tokens < 1 || max_tokens > context) {
    return fail(ErrorCode::kInvalidArgument,
                "{} streams of {} tokens: at least one stream, and 1 to {} tokens (the model's "
                "context) are possible",
                max_streams, max_tokens, context);
  }
  const std::size_t pages = static_cast<std::size_t>(max_streams) *
                            kvcache::pages_for(static_cast<std::size_t>(max_tokens));
  SPUD_TRY(std::unique_ptr<kvcache::KvCache> cache,
           kvcache::KvCache::create(model->kv_geometry(kv_type), pages));
  return std::unique_ptr<SpeedProbe>(
      new SpeedProbe(std::move(model), pool, clock, std::move(cache)));
}

SpeedProbe::SpeedProbe(std::shared_ptr<const model::Model> model, concurrency::ThreadPool& pool,
                       const concurrency::Clock& clock, std::unique_ptr<kvcache::KvCache> cache)
    : model_(std::move(model)),
      pool_(pool),
      clock_(clock),
      cache_(std::move(cache)),
      workspace_(model_->make_workspace()) {}

template <typename Body>
SpeedProbe::Run SpeedProbe::timed(const Body& body) {
  model::ProductTime& products = workspace_->product_time;
  products = {.clock = &clock_};
  const auto begin = clock_.now();
  body();
  return {.time = clock_.now() - begin, .products = products.spent};
}

SpeedProbe::Run SpeedProbe::prefill(std::int64_t tokens) {
  start(1, tokens);
  return timed([&] { feed_prompt(streams_.front(), tokens); });
}

SpeedProbe::Run SpeedProbe::decode(std::int64_t streams, std::int64_t depth, std::int64_t tokens) {
  start(streams, depth + tokens);
  if (depth > 0) {
    for (Stream& stream : streams_) feed_prompt(stream, depth);
  }
  return timed([&] {
    for (std::int64_t i = 0; i < tokens; ++i) step(depth + i);
  });
}

void SpeedProbe::start(std::int64_t streams, std::int64_t total_tokens) {
  for (Stream& stream : streams_) cache_->release(stream.pages);
  streams_.assign(static_cast<std::size_t>(streams), Stream{});
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    SPUD_CHECK(cache_->grow(streams_[i].pages, static_cast<std::size_t>(total_tokens)));
    streams_[i].last = static_cast<model::TokenId>(
        i % static_cast<std::size_t>(model_->hyper_parameters().vocabulary));
  }
}

void SpeedProbe::feed_prompt(Stream& stream, std::int64_t tokens) {
  const auto vocabulary = static_cast<std::uint64_t>(model_->hyper_parameters().vocabulary);
  std::vector<model::TokenId> prompt(static_cast<std::size_t>(tokens));
  // A linear congruential generator: speed does not depend on the words, only on their variety.
  auto state = static_cast<std::uint64_t>(stream.last) + 1;
  for (model::TokenId& token : prompt) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    token = static_cast<model::TokenId>((state >> 33) % vocabulary);
  }
  const model::SequenceSlice slice{.tokens = prompt,
                                   .pages = &stream.pages,
                                   .first_logit = tokens - 1,
                                   .summary = &stream.output};
  model_->forward(std::span(&slice, 1), *cache_, *workspace_, pool_, {});
  stream.last = stream.output.top.front().token;
}

void SpeedProbe::step(std::int64_t position) {
  batch_.clear();
  for (Stream& stream : streams_) {
    batch_.push_back({.tokens = {&stream.last, 1},
                      .first_position = position,
                      .pages = &stream.pages,
                      .summary = &stream.output});
  }
  model_->forward(batch_, *cache_, *workspace_, pool_, {});
  for (Stream& stream : streams_) stream.last = stream.output.top.front().token;
}

}  // namespace spud::engine
