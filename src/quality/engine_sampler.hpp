// SPDX-License-Identifier: Apache-2.0
// Text by the model itself ("self"): free generation at temperature 1 through the engine, all
// sequences batched. For models whose training text nobody has: what they write is what they know.
// Each sequence starts with BOS (if there is one) and one random plain token, so that they differ
// (Liu et al. 2023, LLM-QAT).
#pragma once

#include "engine/engine.hpp"
#include "quality/dataset.hpp"

namespace spud::quality {

// Not thread-safe; `engine` must outlive it and is used alone meanwhile for the same result.
class EngineSampler final : public TextSampler {
 public:
  explicit EngineSampler(engine::Engine& engine) : engine_(engine) {}
  Result<std::vector<std::vector<TokenId>>> sample(std::int64_t count, std::int64_t max_tokens,
                                                   std::uint64_t seed) override;

 private:
  engine::Engine& engine_;
};

}  // namespace spud::quality
