// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "telemetry/log.hpp"

namespace spud::engine {

Sequence::Sequence(GenerationId id, GenerationRequest request, GenerationSink sink,
                   std::shared_ptr<const std::atomic<bool>> cancelled,
                   const tokenizer::Tokenizer& tokenizer, concurrency::SteadyTime submit_time)
    : submitted(submit_time),
      id_(id),
      request_(std::move(request)),
      sink_(std::move(sink)),
      cancelled_(std::move(cancelled)),
      tokenizer_(tokenizer),
      sampler_(request_.sampling, request_.prompt),
      decoder_(tokenizer),
      stops_(request_.stop),
      tokens_(std::move(request_.prompt)),
      num_prompt_tokens_(std::ssize(tokens_)) {}

std::span<const TokenId> Sequence::next_tokens(std::int64_t count) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(computed),
                                    static_cast<std::size_t>(count));
}

void Sequence::restart() {
  computed = 0;
  prefix = {};
  // Scores of a prompt that was not finished are made again with its rows.
  if (completion_tokens_ == 0) prompt_events_.clear();
}

SampledToken Sequence::sample(std::span<const float> logits, const kernels::KernelTable& kernels,
                              SamplerScratch& scratch) {
  SampledToken sampled;
  sampled.token = sampler_.sample(logits, kernels, scratch);
  sampled.broken = !std::isfinite(logits[static_cast<std::size_t>(sampled.token)]);
  if (request_.top_logprobs >= 0 && !sampled.broken) {
    sampled.logprobs = compute_logprobs(logits, sampled.token, request_.top_logprobs, kernels);
  }
  return sampled;
}

std::optional<model::LogitSummary> Sequence::logits_needed() const {
  const std::optional<std::int32_t> needed = sampler_.top_needed();
  if (!needed) return std::nullopt;
  return model::LogitSummary{.top_count = std::max(*needed, request_.top_logprobs),
                             .wants_log_sum_exp = request_.top_logprobs >= 0};
}

SampledToken Sequence::sample(const model::LogitSummary& summary) {
  SampledToken sampled;
  sampled.broken = true;
  if (summary.top.empty()) return sampled;
  sampled.token = sampler_.sample(summary.top);
  for (const model::TopLogit& entry : summary.top) {
    if (entry.token == sampled.token) sampled.broken = !std::isfinite(entry.logit);
  }
  if (request_.top_logprobs >= 0 && !sampled.broken) {
    sampled.logprobs = compute_logprobs(summary, sampled.token, request_.top_logprobs);
  }
  return sampled;
}

void Sequence::score_prompt(std::int64_t position, std::span<const float> logits,
                            const kernels::KernelTable& kernels) {
  if (prompt_events_.empty()) prompt_events_.push_back({.token = tokens_.front()});
  const TokenId token = tokens_[static_cast<std::size_t>(position)];
  LogprobResult result = compute_logprobs(logits, token, request_.top_logprobs, kernels);
  prompt_events_.push_back(
      {.token = token, .text = {}, .logprob = result.chosen, .top = std::move(result.top)});
}

template <typename Call>
void Sequence::call_sink(const Call& call) {
  try {
    call();
  } catch (const std::exception& e) {
    sink_failed_ = true;
    SPUD_LOG(error, "generation sink threw", {"request", request_.request_id},
             {"what", std::string_view(e.what())});
  } catch (...) {
    sink_failed_ = true;
    SPUD_LOG(error, "generation sink threw", {"request", request_.request_id});
  }
}

void Sequence::hand_out_prompt() {
  if (!sink_.on_prompt || sink_failed_) return;
  if (prompt_events_.empty()) prompt_events_.push_back({.token = tokens_.front()});
  call_sink([&] { sink_.on_prompt(std::exchange(prompt_events_, {})); });
}

std::optional<Ending> Sequence::accept(SampledToken&& sampled) {
  if (sampled.broken) {
    return Ending{.reason = FinishReason::kError,
                  .error = Error(ErrorCode::kInternal,
                                 "the model's output is not a number; the weights may be damaged")};
  }
  tokens_.push_back(sampled.token);
  ++completion_tokens_;
  sampler_.accept(sampled.token);
  if (!request_.ignore_eos && tokenizer_.is_end_of_generation(sampled.token)) {
    return Ending{.reason = FinishReason::kStop};
  }
  TokenEvent event{.token = sampled.token,
                   .text = stops_.push(decoder_.push(sampled.token)),
                   .logprob = sampled.logprobs.chosen,
                   .top = std::move(sampled.logprobs.top)};
  if (sink_.on_token) call_sink([&] { sink_.on_token(std::move(event)); });
  if (stops_.matched()) return Ending{.reason = FinishReason::kStop};
  if (completion_tokens_ >= request_.max_tokens) return Ending{.reason = FinishReason::kLength};
  return std::nullopt;
}

void Sequence::finish(Ending ending, concurrency::SteadyTime now) {
  FinishEvent event{.reason = ending.reason,
                    .prompt_tokens = prompt_tokens(),
                    .completion_tokens = completion_tokens_,
                    .error = std::move(ending.error),
                    .cached_tokens = cached_prompt_tokens};
  event.queued = started.value_or(now) - submitted;
  event.retry_after = ending.retry_after;
  if (!stops_.matched()) {
    event.text = stops_.push(decoder_.finish());
    event.text += stops_.finish();
  }
  if (stops_.matched()) {
    event.stop_matched = *stops_.matched();
    if (event.reason == FinishReason::kLength) event.reason = FinishReason::kStop;
  }
  if (sink_.on_finish) call_sink([&] { sink_.on_finish(std::move(event)); });
}

}  // namespace spud::engine
