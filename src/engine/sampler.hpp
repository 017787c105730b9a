// SPDX-License-Identifier: Apache-2.0
// Chooses the next token from raw logits. Order: logit bias, repetition penalty (prompt and
// output), presence and frequency penalties (output), temperature, min-p, top-k, top-p, draw. The
// choice is a function of the logits, the options, the history and (seed, index of the token)
// alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/engine.hpp"
#include "kernels/kernel_table.hpp"
#include "model/model.hpp"

namespace spud::engine {

// Temperature in [0, 100], top_p in (0, 1], ... : kInvalidArgument with param.
[[nodiscard]] Result<void> validate(const SamplingOptions& options, std::int64_t vocabulary);

// Log-probability of `token` and of the `top` most likely ones (ties: the smaller id first), of the
// model's own distribution.
struct LogprobResult {
  float chosen = 0;
  std::vector<TokenLogprob> top;
};
LogprobResult compute_logprobs(std::span<const float> logits, TokenId token, std::int32_t top,
                               const kernels::KernelTable& kernels);

// The same from a summary that has the sum of exponentials, `token` and the `top` most likely ones.
LogprobResult compute_logprobs(const model::LogitSummary& summary, TokenId token, std::int32_t top);

// What a draw works in: as large as the vocabulary when any token may be drawn, so it belongs to
// the thread that draws, not to the sequence.
struct SamplerScratch {
  struct Candidate {
    float value;  // logit, later weight
    TokenId token;
    bool operator<(const Candidate& other) const noexcept {  // more likely first
      return value != other.value ? value > other.value : token < other.token;
    }
  };
  std::vector<float> logits;  // changed copy
  std::vector<Candidate> candidates;

  // Most that it grows to.
  static std::size_t bytes(std::int64_t vocabulary) noexcept {
    return static_cast<std::size_t>(vocabulary) * (sizeof(float) + sizeof(Candidate));
  }
};

// One per sequence; thread-compatible.
class Sampler {
 public:
  // `options` must be valid.
  Sampler(SamplingOptions options, std::span<const TokenId> prompt);

  // Draws number `count of tokens accepted so far`.
  TokenId sample(std::span<const float> logits, const kernels::KernelTable& kernels,
                 SamplerScratch& scratch);
  // How many of the largest logits decide the next draw; nothing when all of them may.
  std::optional<std::int32_t> top_needed() const noexcept;
  // The same draw from at least so many, the largest first; `top` is not empty.
  TokenId sample(std::span<const model::TopLogit> top) const;
  // Tells what was appended to the output, so that penalties and the next draw know.
  void accept(TokenId token);

 private:
  using Candidates = std::vector<SamplerScratch::Candidate>;
  struct History {
    std::int32_t output_count = 0;
    bool in_prompt = false;
  };
  bool changes_logits() const noexcept;
  void apply_penalties(std::vector<float>& logits) const;
  float reach() const noexcept;
  TokenId draw_from(Candidates& candidates, float max_logit) const;
  void keep_top_k(Candidates& candidates) const;
  void weigh(Candidates& candidates, float max_logit) const;
  void keep_top_p(Candidates& candidates) const;
  TokenId draw(const Candidates& candidates) const;

  SamplingOptions options_;
  bool penalises_;
  std::uint64_t num_accepted_ = 0;
  std::unordered_map<TokenId, History> history_;  // only when a penalty is on
};

}  // namespace spud::engine
