// SPDX-License-Identifier: Apache-2.0
// One loaded model with its step loop: takes generations, batches them continuously, and hands out
// text as it becomes certain. The abstract class is what the gateway sees; engine.cpp has the real
// one (its own thread), tests may script another.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "concurrency/clock.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::engine {

using tokenizer::TokenId;
using GenerationId = std::uint64_t;

struct SamplingOptions {
  float temperature = 1.0F;  // 0 = greedy
  std::int32_t top_k = 0;    // 0 = off
  float top_p = 1.0F;        // 1 = off
  float min_p = 0.0F;        // 0 = off
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  float repetition_penalty = 1.0F;  // 1 = off
  std::map<TokenId, float> logit_bias;
  std::uint64_t seed = 0;  // the caller draws one when the client gave none
};

struct GenerationRequest {
  std::vector<TokenId> prompt;
  SamplingOptions sampling;
  std::int64_t max_tokens = 0;    // >= 1; prompt + max_tokens <= context (checked by submit)
  std::vector<std::string> stop;  // stop strings, not part of the text
  bool ignore_eos = false;
  std::int32_t top_logprobs = -1;  // -1 = none, 0 = chosen token only, up to 20
  bool echo_prompt_logprobs = false;
  std::optional<concurrency::SteadyTime> deadline;
  std::string request_id;
  // Whose it is: tenants share the machine by weight and never each other's cached prompts.
  std::string tenant;
  double weight = 1;          // > 0; of the tenant, the last one given counts
  std::int32_t priority = 0;  // among the tenant's own; lower goes first
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;
};

enum class FinishReason { kStop, kLength, kCancelled, kError };

// Of one generation, in order: any number of tokens, then exactly one finish.
struct TokenEvent {
  TokenId token = 0;
  std::string text;  // what became certain: valid UTF-8, may be empty, never part of a stop string
  // With logprobs only: of the model's distribution, before temperature and filters.
  float logprob = 0;
  std::vector<TokenLogprob> top;
};
struct FinishEvent {
  FinishReason reason = FinishReason::kStop;
  std::string text;          // what was held back (a possible stop string that did not come)
  std::string stop_matched;  // the stop string, if that ended it
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;  // every sampled token, the ending one included
  std::optional<Error> error;          // with kError
  std::int64_t cached_tokens = 0;      // of prompt_tokens, found in the prefix cache
  std::chrono::nanoseconds queued{0};  // from submit to the first step that worked on it
  // With kError and kUnavailable, refused early: another try makes sense after so long.
  std::chrono::nanoseconds retry_after{0};
};

// Called on the engine thread; must not block. One sink per generation. A sink that throws ends its
// own generation with kCancelled.
struct GenerationSink {
  std::function<void(TokenEvent&&)> on_token;
  std::function<void(FinishEvent&&)> on_finish;
  // With echo_prompt_logprobs: once, before the first token, one event per prompt token in order.
  // The first has no predecessor: its logprob is 0 and its top is empty. May be null.
  std::function<void(std::vector<TokenEvent>&&)> on_prompt;
};

// One step, for metrics. The real engine takes a StepObserver among its options and calls it on the
// engine thread after each step; it must not block.
struct StepReport {
  std::chrono::nanoseconds duration{0};  // of which:
  std::chrono::nanoseconds planning{0};
  std::chrono::nanoseconds computing{0};  // forward and sampling
  std::chrono::nanoseconds delivering{0};
  std::int64_t prompt_tokens = 0;
  std::int64_t decode_tokens = 0;
  std::int64_t context_tokens = 0;  // positions that attention read, over all rows
};
using StepObserver = std::function<void(const StepReport&)>;

struct TenantStats {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
};

struct EngineStats {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t kv_pages_total = 0;
  std::int64_t kv_pages_free = 0;    // held by nobody, or by the prefix cache alone
  std::int64_t kv_pages_cached = 0;  // known to the prefix cache, in use or not
  std::int64_t kv_page_bytes = 0;
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int64_t deadline_refusals = 0;
  std::int64_t prefix_tokens_looked_up = 0;  // prompt tokens that could have been found
  std::int64_t prefix_tokens_found = 0;
  std::int64_t prefix_pages_evicted = 0;
  std::int64_t guessed_tokens = 0;  // rows computed for speculation
  std::int64_t guessed_tokens_kept = 0;
  std::chrono::nanoseconds step_target{0};     // longest step wanted; 0 = the policy has none
  std::map<std::string, TenantStats> tenants;  // those with something running or waiting
};

// Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;

  // Refuses before any work: kInvalidArgument (empty prompt, token out of range, context exceeded,
  // with param), kResourceExhausted (queue full), kUnavailable (stopping).
  [[nodiscard]] virtual Result<GenerationId> submit(GenerationRequest request,
                                                    GenerationSink sink) = 0;
  // The sequence ends within one step with kCancelled. Unknown or finished ids are ignored.
  virtual void cancel(GenerationId id) = 0;

  // No new generations; running ones finish until `deadline`, then are cancelled. Returns when
  // idle.
  virtual void drain(concurrency::SteadyTime deadline) = 0;

  virtual const tokenizer::Tokenizer& tokenizer() const noexcept = 0;
  virtual std::int64_t context_length() const noexcept = 0;
  virtual EngineStats stats() const = 0;
};

}  // namespace spud::engine
