// SPDX-License-Identifier: Apache-2.0
#include "gateway/internal/make_requests.hpp"

#include <algorithm>

namespace spud::gateway::internal {

using concurrency::SteadyTime;

namespace {

// Distinct seeds for the choices of one request, the same ones every time (Weyl sequence step).
constexpr std::uint64_t kSeedStep = 0x9E3779B97F4A7C15U;

// max_tokens for one prompt, or why it does not fit.
std::expected<std::int64_t, api::ApiError> choose_max_tokens(const Job& job,
                                                             std::int64_t prompt_tokens,
                                                             std::int64_t context) {
  const std::int64_t wanted = std::max<std::int64_t>(job.params.max_tokens.value_or(1), 1);
  if (prompt_tokens + wanted > context) {
    const bool prompt_alone = prompt_tokens >= context || !job.params.max_tokens;
    std::string message =
        prompt_alone
            ? fmt::format(
                  "This model's maximum context length is {} tokens, but the prompt alone "
                  "has {}; shorten it.",
                  context, prompt_tokens)
            : fmt::format(
                  "This model's maximum context length is {} tokens, but {} were asked for "
                  "({} in the prompt, {} in the answer); shorten the prompt or lower '{}'.",
                  context, prompt_tokens + wanted, prompt_tokens, wanted,
                  job.params.max_tokens_param);
    return std::unexpected(api::context_length_exceeded(
        std::move(message), prompt_alone ? job.prompt_param : job.params.max_tokens_param));
  }
  return job.params.max_tokens ? wanted : context - prompt_tokens;
}

engine::SamplingOptions make_sampling(const api::GenerationParams& params) {
  engine::SamplingOptions sampling{.temperature = params.temperature,
                                   .top_k = static_cast<std::int32_t>(params.top_k),
                                   .top_p = params.top_p,
                                   .min_p = params.min_p,
                                   .presence_penalty = params.presence_penalty,
                                   .frequency_penalty = params.frequency_penalty,
                                   .repetition_penalty = params.repetition_penalty};
  if (params.top_p == 0) {  // OpenAI takes 0: the smallest nucleus is the likeliest token
    sampling.top_p = 1;
    sampling.top_k = 1;
  }
  for (const auto& [token, bias] : params.logit_bias) sampling.logit_bias[token] = bias;
  return sampling;
}

}  // namespace

std::optional<SteadyTime> deadline_of(const State& state, const RequestContext& context,
                                      const Job& job) {
  std::optional<std::chrono::nanoseconds> limit = context.timeout;
  if (job.params.timeout_s) {
    const auto asked =
        std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * *job.params.timeout_s));
    limit = std::min(limit.value_or(asked), asked);
  }
  if (state.options.request_timeout.count() > 0) {
    const std::chrono::nanoseconds longest = state.options.request_timeout;
    limit = std::min(limit.value_or(longest), longest);
  }
  if (!limit) return std::nullopt;
  return context.started + *limit;
}

std::optional<api::ApiError> refuse_too_long(const engine::Engine& engine, std::size_t bytes,
                                             const std::string& param) {
  const auto context = static_cast<std::size_t>(engine.context_length());
  const std::size_t longest = engine.tokenizer().longest_token_bytes();
  if (bytes / longest < context) return std::nullopt;
  return api::context_length_exceeded(
      fmt::format("This model's maximum context length is {} tokens of at most {} bytes, but the "
                  "prompt alone has {} bytes; shorten it.",
                  context, longest, bytes),
      param);
}

std::expected<std::vector<engine::GenerationRequest>, api::ApiError> make_requests(
    State& state, const RequestContext& context, Job& job) {
  const std::int64_t context_length = state.parts.host.engine->context_length();
  const engine::SamplingOptions sampling = make_sampling(job.params);
  const std::uint64_t seed =
      job.params.seed ? static_cast<std::uint64_t>(*job.params.seed) : state.random();
  std::vector<engine::GenerationRequest> requests;
  for (PreparedPrompt& prompt : job.prompts) {
    auto max_tokens = choose_max_tokens(job, std::ssize(prompt.tokens), context_length);
    if (!max_tokens) return std::unexpected(std::move(max_tokens).error());
    for (std::int64_t i = 0; i < job.params.n; ++i) {
      engine::GenerationRequest request{.prompt = prompt.tokens,
                                        .sampling = sampling,
                                        .max_tokens = *max_tokens,
                                        .stop = job.params.stop,
                                        .ignore_eos = job.params.ignore_eos};
      request.sampling.seed = seed + static_cast<std::uint64_t>(i) * kSeedStep;
      request.top_logprobs = static_cast<std::int32_t>(job.params.top_logprobs);
      if (state.parts.request_log != nullptr) {  // its lines hold the log-prob of every token
        request.top_logprobs = std::max<std::int32_t>(request.top_logprobs, 0);
      }
      request.echo_prompt_logprobs = job.echo && job.params.top_logprobs >= 0;
      request.deadline = deadline_of(state, context, job);
      request.request_id = context.request_id;
      request.tenant = context.tenant.name;
      request.weight = context.tenant.weight;
      request.priority =
          static_cast<std::int32_t>(job.params.priority.value_or(context.tenant.priority));
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

}  // namespace spud::gateway::internal
