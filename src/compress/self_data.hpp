// SPDX-License-Identifier: Apache-2.0
// `data: self`: what a chain measures on when nobody has text like the model's own. Sequences are
// sampled from the original with a fixed seed, split like the built-in set and hashed like any
// data. Sampling takes a minute or two, so the tokens are kept in the work folder and a resumed
// chain reads them back; the journal's digests notice a file that was changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "compress/recipe.hpp"
#include "model/model.hpp"
#include "quality/dataset.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::compress {

inline constexpr std::uint64_t kSelfSeed = 20261130;

// Samples once and keeps the answer in a file; the same question is answered from there. A file
// that belongs to another model or question, or is cut short, counts as none. Not thread-safe.
class SavedSampler final : public quality::TextSampler {
 public:
  // `model_digest` names the model that `sampler` asks.
  SavedSampler(quality::TextSampler& sampler, std::filesystem::path file, std::string model_digest)
      : sampler_(sampler), file_(std::move(file)), model_digest_(std::move(model_digest)) {}
  Result<std::vector<std::vector<quality::TokenId>>> sample(std::int64_t count,
                                                            std::int64_t max_tokens,
                                                            std::uint64_t seed) override;

 private:
  quality::TextSampler& sampler_;
  std::filesystem::path file_;
  std::string model_digest_;
};

// Samples to draw so that each split gets its tokens: half of them are validation, a quarter each
// calibration and hold-out, and some end early.
std::int64_t self_samples(const MeasureOptions& options) noexcept;

struct SelfDataInputs {
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::string model_digest;
  std::filesystem::path folder;  // of the file with the tokens
  std::int64_t threads = 1;
};
[[nodiscard]] Result<quality::Dataset> sample_self_data(const MeasureOptions& options,
                                                        const SelfDataInputs& inputs);

}  // namespace spud::compress
