// SPDX-License-Identifier: Apache-2.0
// For tests: a scorer and a tokenizer that need no model. Not linked into the program.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/scorer.hpp"
#include "quality/dataset.hpp"

namespace spud::quality::testing {

// Logits that depend on the tokens so far only, plus noise of a stated size that depends on
// `noise_seed`: a model and its more or less good copies.
class FakeScorer final : public engine::Scorer {
 public:
  struct Options {
    std::int64_t vocabulary = 64;
    double noise = 0;
    std::uint64_t noise_seed = 1;
    double leak = 0;                    // added to the right answer's logit: an impossible model
    std::int64_t nan_at_call = -1;      // that call's first logit is NaN
    std::int64_t stop_after_call = -1;  // that call and later ones give one row too few
  };
  explicit FakeScorer(Options options) : options_(options) {}

  Result<void> score(std::span<const TokenId> tokens, std::int64_t first_position,
                     const engine::LogitsVisitor& visit) override {
    const std::int64_t call = calls_++;
    std::vector<float> logits(static_cast<std::size_t>(options_.vocabulary));
    const bool short_call = options_.stop_after_call >= 0 && call >= options_.stop_after_call;
    const std::int64_t end = std::ssize(tokens) - (short_call ? 1 : 0);
    for (std::int64_t p = first_position; p < end; ++p) {
      fill(tokens.first(static_cast<std::size_t>(p) + 1), logits);
      if (options_.leak != 0 && p + 1 < std::ssize(tokens)) {
        logits[static_cast<std::size_t>(tokens[static_cast<std::size_t>(p) + 1])] +=
            static_cast<float>(options_.leak);
      }
      if (call == options_.nan_at_call && p == first_position) {
        logits[3] = std::numeric_limits<float>::quiet_NaN();
      }
      visit(p, logits);
    }
    return {};
  }
  void set_observer(const model::ActivationObserver*) override {}
  std::int64_t vocabulary_size() const noexcept override { return options_.vocabulary; }
  std::int64_t calls() const noexcept { return calls_; }

 private:
  void fill(std::span<const TokenId> context, std::vector<float>& logits) const {
    std::uint64_t state = 17;
    for (const TokenId token : context)
      state = state * 6364136223846793005ULL + 1442695040888963407ULL +
              static_cast<std::uint64_t>(token);
    std::mt19937_64 base(state);
    std::mt19937_64 noise(state ^ (options_.noise_seed * 0x9e3779b97f4a7c15ULL));
    std::normal_distribution<double> normal;
    for (float& logit : logits) {
      logit = static_cast<float>(2 * normal(base));
    }
    if (options_.noise == 0) return;
    std::normal_distribution<double> error(0, options_.noise);
    for (float& logit : logits) logit += static_cast<float>(error(noise));
  }

  Options options_;
  std::int64_t calls_ = 0;
};

// `count` sequences sampled from FakeScorer's own distribution, so that the original is the best
// model of its text, as a language model is of its language.
inline SequenceSet make_sequences(std::size_t count, std::size_t length = 40,
                                  std::uint64_t seed = 5) {
  FakeScorer original({});
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  SequenceSet set{.source = "fake validation"};
  for (std::size_t i = 0; i < count; ++i) {
    Sequence sequence{.id = "text " + std::to_string(i + 1), .first_scored = 4};
    sequence.tokens.push_back(static_cast<TokenId>(random() % 64));
    while (sequence.tokens.size() < length) {
      const auto last = std::ssize(sequence.tokens) - 1;
      auto sampled =
          original.score(sequence.tokens, last, [&](std::int64_t, std::span<const float> row) {
            double total = 0;
            for (const float x : row) total += std::exp(static_cast<double>(x));
            double rest = uniform(random) * total;
            TokenId token = 0;
            while (token < 63 &&
                   (rest -= std::exp(static_cast<double>(row[static_cast<std::size_t>(token)]))) >
                       0)
              ++token;
            sequence.tokens.push_back(token);
          });
      if (!sampled) break;
    }
    set.sequences.push_back(std::move(sequence));
  }
  set.digest = digest_of(set.sequences);
  return set;
}

// One token a byte; byte 0 is BOS.
class ByteTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit ByteTokenizer(bool adds_bos = false) : adds_bos_(adds_bos) {}
  Result<std::vector<TokenId>> encode(std::string_view text,
                                      tokenizer::EncodeOptions options) const override {
    std::vector<TokenId> ids;
    if (options.add_special && adds_bos_) ids.push_back(0);
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  Result<std::vector<TokenId>> encode_with_literals(
      std::string_view text, std::span<const tokenizer::TextRange>,
      tokenizer::EncodeOptions options) const override {
    return encode(text, options);
  }
  std::string_view token_bytes(TokenId, bool) const noexcept override { return "x"; }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    return std::string(ids.begin(), ids.end());
  }
  std::size_t vocabulary_size() const noexcept override { return 256; }
  std::size_t longest_token_bytes() const noexcept override { return 1; }
  bool is_special(TokenId id) const noexcept override { return id == 0; }
  bool is_end_of_generation(TokenId) const noexcept override { return false; }
  std::optional<TokenId> bos() const noexcept override { return 0; }
  std::optional<TokenId> eos() const noexcept override { return std::nullopt; }
  bool adds_bos() const noexcept override { return adds_bos_; }
  std::optional<TokenId> find_token(std::string_view) const noexcept override {
    return std::nullopt;
  }
  std::string_view kind() const noexcept override { return "bytes"; }
  std::string_view pre_tokenizer() const noexcept override { return ""; }

 private:
  bool adds_bos_;
};

}  // namespace spud::quality::testing
