// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/philox.hpp"
#include "kernels/log_sum_exp.hpp"

namespace spud::engine {
namespace {

constexpr float kMaxTemperature = 100;
constexpr float kMaxPenalty = 100;
// A token this far below the best (in units of the temperature) has a weight below 1e-13 of it:
// even 262144 of them together never move a draw by more than 3e-8. They are left out, which
// spares most of the exponentials.
constexpr float kNegligible = 30;

// Beyond it a summary costs more than the logits it spares.
constexpr std::int32_t kMaxTopNeeded = 256;

Result<void> check_range(const char* name, float value, float low, float high, bool low_open) {
  const bool inside = value <= high && (low_open ? value > low : value >= low);
  if (inside) return {};
  auto error = Error(ErrorCode::kInvalidArgument,
                     fmt::format("{} is {}; it must be {} {} and at most {}", name, value,
                                 low_open ? "more than" : "at least", low, high));
  return std::unexpected(std::move(error).with_param(name));
}

}  // namespace

Result<void> validate(const SamplingOptions& o, std::int64_t vocabulary) {
  SPUD_TRY(check_range("temperature", o.temperature, 0, kMaxTemperature, false));
  SPUD_TRY(check_range("top_p", o.top_p, 0, 1, true));
  SPUD_TRY(check_range("min_p", o.min_p, 0, 1, false));
  SPUD_TRY(check_range("presence_penalty", o.presence_penalty, -kMaxPenalty, kMaxPenalty, false));
  SPUD_TRY(check_range("frequency_penalty", o.frequency_penalty, -kMaxPenalty, kMaxPenalty, false));
  SPUD_TRY(check_range("repetition_penalty", o.repetition_penalty, 0, kMaxPenalty, true));
  if (o.top_k < 0) {
    return std::unexpected(Error(ErrorCode::kInvalidArgument,
                                 fmt::format("top_k is {}; it must be 0 or more", o.top_k))
                               .with_param("top_k"));
  }
  for (const auto& [token, bias] : o.logit_bias) {
    if (token >= 0 && token < vocabulary && std::isfinite(bias)) continue;
    return std::unexpected(
        Error(ErrorCode::kInvalidArgument,
              fmt::format("logit_bias of {} for token {}: tokens are 0 to {}, biases are finite",
                          bias, token, vocabulary - 1))
            .with_param("logit_bias"));
  }
  return {};
}

LogprobResult compute_logprobs(std::span<const float> logits, TokenId token, std::int32_t top,
                               const kernels::KernelTable& kernels) {
  const auto n = static_cast<std::int64_t>(logits.size());
  const float normaliser = kernels::log_sum_exp(kernels, logits.data(), n);
  LogprobResult result{.chosen = logits[static_cast<std::size_t>(token)] - normaliser, .top = {}};
  if (top <= 0) return result;
  // Insertion into a short sorted list: nearly every logit fails the first comparison.
  auto& best = result.top;
  best.reserve(static_cast<std::size_t>(top) + 1);
  const auto limit = static_cast<std::size_t>(top);
  for (std::int64_t i = 0; i < n; ++i) {
    const float logit = logits[static_cast<std::size_t>(i)];
    if (best.size() == limit && !(logit > best.back().logprob)) continue;
    const auto at = std::upper_bound(
        best.begin(), best.end(), logit,
        [](float value, const TokenLogprob& other) { return value > other.logprob; });
    best.insert(at, {.token = static_cast<TokenId>(i), .logprob = logit});
    if (best.size() > limit) best.pop_back();
  }
  for (TokenLogprob& entry : best) entry.logprob -= normaliser;
  return result;
}

LogprobResult compute_logprobs(const model::LogitSummary& summary, TokenId token,
                               std::int32_t top) {
  LogprobResult result;
  for (const model::TopLogit& entry : summary.top) {
    const float logprob = entry.logit - summary.log_sum_exp;
    if (entry.token == token) result.chosen = logprob;
    if (std::ssize(result.top) < top) {
      result.top.push_back({.token = entry.token, .logprob = logprob});
    }
  }
  return result;
}

Sampler::Sampler(SamplingOptions options, std::span<const TokenId> prompt)
    : options_(std::move(options)),
      penalises_(options_.presence_penalty != 0 || options_.frequency_penalty != 0 ||
                 options_.repetition_penalty != 1) {
  if (options_.repetition_penalty == 1) return;
  for (const TokenId token : prompt) history_[token].in_prompt = true;
}

void Sampler::accept(TokenId token) {
  ++num_accepted_;
  if (penalises_) ++history_[token].output_count;
}

bool Sampler::changes_logits() const noexcept {
  return !options_.logit_bias.empty() || (penalises_ && !history_.empty());
}

void Sampler::apply_penalties(std::vector<float>& logits) const {
  for (const auto& [token, bias] : options_.logit_bias) {
    logits[static_cast<std::size_t>(token)] += bias;
  }
  for (const auto& [token, seen] : history_) {
    float& logit = logits[static_cast<std::size_t>(token)];
    // Keskar et al. 2019: divides what is positive, multiplies what is negative.
    logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    if (seen.output_count == 0) continue;
    logit -= options_.presence_penalty;
    logit -= options_.frequency_penalty * static_cast<float>(seen.output_count);
  }
}

TokenId Sampler::sample(std::span<const float> logits, const kernels::KernelTable& kernels,
                        SamplerScratch& scratch) {
  if (changes_logits()) {
    scratch.logits.assign(logits.begin(), logits.end());
    apply_penalties(scratch.logits);
    logits = scratch.logits;
  }
  const auto best =
      static_cast<TokenId>(kernels.argmax(logits.data(), static_cast<std::int64_t>(logits.size())));
  if (options_.temperature == 0 || options_.top_k == 1) return best;

  const float max_logit = logits[static_cast<std::size_t>(best)];
  const float floor = max_logit - reach() * options_.temperature;
  Candidates& candidates = scratch.candidates;
  candidates.clear();
  candidates.reserve(logits.size());  // once, and no larger
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= floor) candidates.push_back({logits[i], static_cast<TokenId>(i)});
  }
  if (candidates.empty()) return best;  // not-a-number logits; the engine ends such a sequence
  return draw_from(candidates, max_logit);
}

std::optional<std::int32_t> Sampler::top_needed() const noexcept {
  if (changes_logits()) return std::nullopt;
  if (options_.temperature == 0 || options_.top_k == 1) return 1;
  if (options_.top_k == 0 || options_.top_k > kMaxTopNeeded) return std::nullopt;
  return options_.top_k;
}

TokenId Sampler::sample(std::span<const model::TopLogit> top) const {
  const model::TopLogit& best = top.front();
  if (options_.temperature == 0 || options_.top_k == 1) return best.token;
  const float floor = best.logit - reach() * options_.temperature;
  Candidates candidates;
  candidates.reserve(top.size());
  for (const model::TopLogit& entry : top) {
    if (entry.logit >= floor) candidates.push_back({entry.logit, entry.token});
  }
  if (candidates.empty()) return best.token;
  return draw_from(candidates, best.logit);
}

// How far below the best a token may be, in units of the temperature.
float Sampler::reach() const noexcept {
  return options_.min_p > 0 ? std::min(kNegligible, -std::log(options_.min_p)) : kNegligible;
}

TokenId Sampler::draw_from(Candidates& candidates, float max_logit) const {
  keep_top_k(candidates);
  weigh(candidates, max_logit);
  keep_top_p(candidates);
  return draw(candidates);
}

// In order of likelihood: sums over what is kept must not depend on how it was found.
void Sampler::keep_top_k(Candidates& candidates) const {
  if (options_.top_k == 0) return;
  const auto kept = std::min(candidates.size(), static_cast<std::size_t>(options_.top_k));
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept),
                    candidates.end());
  candidates.resize(kept);
}

// Logits to weights relative to the best.
void Sampler::weigh(Candidates& candidates, float max_logit) const {
  for (SamplerScratch::Candidate& candidate : candidates) {
    candidate.value = std::exp((candidate.value - max_logit) / options_.temperature);
  }
}

// The smallest set of the most likely tokens whose probability reaches top_p.
void Sampler::keep_top_p(Candidates& candidates) const {
  if (options_.top_p >= 1) return;
  double total = 0;
  for (const SamplerScratch::Candidate& candidate : candidates)
    total += static_cast<double>(candidate.value);
  const double wanted = total * static_cast<double>(options_.top_p);
  // Sorted in growing parts: the set is usually a few dozen of many thousand.
  std::size_t sorted = 0;
  double sum = 0;
  for (std::size_t part = 64; sorted < candidates.size(); part *= 4) {
    const std::size_t end = std::min(candidates.size(), sorted + part);
    std::partial_sort(candidates.begin() + static_cast<std::ptrdiff_t>(sorted),
                      candidates.begin() + static_cast<std::ptrdiff_t>(end), candidates.end());
    for (; sorted < end; ++sorted) {
      sum += static_cast<double>(candidates[sorted].value);
      if (sum >= wanted) {
        candidates.resize(sorted + 1);
        return;
      }
    }
  }
}

TokenId Sampler::draw(const Candidates& candidates) const {
  double total = 0;
  for (const SamplerScratch::Candidate& candidate : candidates)
    total += static_cast<double>(candidate.value);
  double left = uniform_draw(options_.seed, num_accepted_) * total;
  for (const SamplerScratch::Candidate& candidate : candidates) {
    left -= static_cast<double>(candidate.value);
    if (left < 0) return candidate.token;
  }
  return candidates.back().token;
}

}  // namespace spud::engine
