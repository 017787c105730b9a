// SPDX-License-Identifier: Apache-2.0
// One generation on the engine thread: its request, its place in the KV cache, and the way from a
// sampled token to what the client sees (end of generation, stop strings, UTF-8, limits).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "concurrency/clock.hpp"
#include "engine/engine.hpp"
#include "engine/ngram_draft.hpp"
#include "engine/sampler.hpp"
#include "engine/stop_matcher.hpp"
#include "kvcache/kv_cache.hpp"
#include "kvcache/prefix_cache.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::engine {

// What sampling one row gave; made on any thread of the pool.
struct SampledToken {
  TokenId token = 0;
  LogprobResult logprobs;
  bool broken = false;  // the logits were not numbers
};

// How a generation ended, decided by accept().
struct Ending {
  FinishReason reason = FinishReason::kStop;
  std::optional<Error> error;
  std::chrono::nanoseconds retry_after{0};
};

// Engine thread only, but for sample(), which touches this sequence alone.
class Sequence {
 public:
  Sequence(GenerationId id, GenerationRequest request, GenerationSink sink,
           std::shared_ptr<const std::atomic<bool>> cancelled,
           const tokenizer::Tokenizer& tokenizer, concurrency::SteadyTime submitted);

  GenerationId id() const noexcept { return id_; }
  const GenerationRequest& request() const noexcept { return request_; }
  bool cancelled() const noexcept { return sink_failed_ || cancelled_->load(); }
  std::int64_t prompt_tokens() const noexcept { return num_prompt_tokens_; }
  std::int64_t worst_case_tokens() const noexcept { return prompt_tokens() + request_.max_tokens; }
  std::int64_t completion_tokens() const noexcept { return completion_tokens_; }

  // Prompt and what was sampled: what the next rows continue.
  std::span<const TokenId> tokens() const noexcept { return tokens_; }
  // Known, but not yet in the KV cache: the rest of the prompt, the last sampled token, or after a
  // preemption all of them.
  std::int64_t pending() const noexcept { return std::ssize(tokens_) - computed; }
  bool decoding() const noexcept { return completion_tokens_ > 0 && pending() == 1; }
  std::span<const TokenId> next_tokens(std::int64_t count) const;
  std::int64_t next_position() const noexcept { return computed; }
  // Every row of the prompt has to be computed here, because its log-probabilities are wanted.
  bool scores_prompt() const noexcept {
    return request_.echo_prompt_logprobs && completion_tokens_ == 0;
  }
  // Its pages are gone; all is to be computed again.
  void restart();

  SampledToken sample(std::span<const float> logits, const kernels::KernelTable& kernels,
                      SamplerScratch& scratch);
  // What the next sample needs of the logits; nothing when it needs all of them.
  std::optional<model::LogitSummary> logits_needed() const;
  SampledToken sample(const model::LogitSummary& summary);
  // Notes the log-probability of the prompt token at `position` from the logits before it.
  void score_prompt(std::int64_t position, std::span<const float> logits,
                    const kernels::KernelTable& kernels);
  void hand_out_prompt();  // when all has been scored

  // Hands the token to the sink. An ending when it was the last one.
  std::optional<Ending> accept(SampledToken&& sampled);
  // Flushes held text and tells the sink. Called once.
  void finish(Ending ending, concurrency::SteadyTime now);

  kvcache::BlockTable pages;
  kvcache::PrefixCursor prefix;           // of pages
  std::int64_t computed = 0;              // tokens that are in pages
  std::int64_t cached_prompt_tokens = 0;  // of those, what was found there
  std::int64_t cached_estimate = 0;       // while waiting: what attach() would find
  std::uint32_t tenant = 0;               // the scheduler's number for request().tenant
  NgramDraft draft;
  bool running = false;
  bool preempted = false;  // at least once
  bool finished = false;
  concurrency::SteadyTime submitted;
  std::optional<concurrency::SteadyTime> started;  // the first step that worked on it

 private:
  template <typename Call>
  void call_sink(const Call& call);

  GenerationId id_;
  GenerationRequest request_;
  GenerationSink sink_;
  std::shared_ptr<const std::atomic<bool>> cancelled_;
  const tokenizer::Tokenizer& tokenizer_;
  Sampler sampler_;
  tokenizer::StreamDecoder decoder_;
  StopMatcher stops_;
  std::vector<TokenEvent> prompt_events_;
  std::vector<TokenId> tokens_;
  std::int64_t num_prompt_tokens_;
  std::int64_t completion_tokens_ = 0;
  bool sink_failed_ = false;
};

}  // namespace spud::engine
