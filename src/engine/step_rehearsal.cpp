// SPDX-License-Identifier: Apache-2.0
// Steps that compute nothing of use, to learn what steps cost.
#include <algorithm>

#include "engine/step_runner.hpp"

namespace spud::engine {

bool StepRunner::rehearse(std::int64_t streams, std::int64_t rows) {
  const auto vocabulary = static_cast<std::size_t>(model_->hyper_parameters().vocabulary);
  std::vector<kvcache::BlockTable> tables(static_cast<std::size_t>(streams) + 1);
  std::vector<TokenId> tokens(static_cast<std::size_t>(std::max(streams, rows)));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<TokenId>(i * 7919 % vocabulary);
  }
  bool fits = cache_.grow(tables.back(), static_cast<std::size_t>(rows));
  batch_.clear();
  for (std::size_t i = 0; i < static_cast<std::size_t>(streams); ++i) {
    fits = fits && cache_.grow(tables[i], 1);
    batch_.push_back({.tokens = std::span(tokens).subspan(i, 1), .pages = &tables[i]});
  }
  if (rows > 0) {
    batch_.push_back({.tokens = std::span(tokens).first(static_cast<std::size_t>(rows)),
                      .pages = &tables.back(),
                      .first_logit = rows});
  }
  if (fits) {
    const std::size_t size = static_cast<std::size_t>(streams) * vocabulary;
    if (logits_.size() < size) logits_.resize(size);
    model_->forward(batch_, cache_, *workspace_, pool_, std::span(logits_).first(size));
  }
  for (kvcache::BlockTable& table : tables) cache_.release(table);
  return fits;
}

}  // namespace spud::engine
