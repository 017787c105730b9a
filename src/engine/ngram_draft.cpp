// SPDX-License-Identifier: Apache-2.0
#include "engine/ngram_draft.hpp"

#include <algorithm>

namespace spud::engine {
namespace {

using tokenizer::TokenId;

constexpr std::size_t kOrder = 3;
// A row more costs about a fifth of a step with one row: below this share it does not pay.
constexpr double kWorthIt = 0.3;
constexpr double kProbation = 0.45;
constexpr std::size_t kPause = 32;
constexpr double kRate = 0.2;

// Twenty-one bits each; a collision is found out, because the tokens are compared.
std::uint64_t key_of(std::span<const TokenId> three) {
  std::uint64_t key = 0;
  for (const TokenId token : three) key = (key << 21) ^ static_cast<std::uint32_t>(token);
  return key;
}

std::int64_t draft_length(double kept_share) {
  if (kept_share > 0.8) return NgramDraft::kLongest;
  return kept_share > 0.5 ? 4 : 2;
}

}  // namespace

std::vector<TokenId> NgramDraft::propose(std::span<const TokenId> tokens, std::int64_t most) {
  if (most <= 0 || tokens.size() <= kOrder || tokens.size() < paused_until_) return {};
  // The last three are looked up before they are learnt.
  for (std::size_t end = std::max(num_indexed_, kOrder); end < tokens.size(); ++end) {
    follows_[key_of(tokens.subspan(end - kOrder, kOrder))] = static_cast<std::uint32_t>(end);
  }
  num_indexed_ = tokens.size();
  const std::span<const TokenId> last = tokens.last(kOrder);
  const auto found = follows_.find(key_of(last));
  if (found == follows_.end()) return {};
  const std::size_t at = found->second;
  if (!std::ranges::equal(tokens.subspan(at - kOrder, kOrder), last)) return {};
  const auto count = std::min<std::size_t>(
      tokens.size() - at, static_cast<std::size_t>(std::min(most, draft_length(kept_share_))));
  const std::span<const TokenId> draft = tokens.subspan(at, count);
  return {draft.begin(), draft.end()};
}

void NgramDraft::report(std::int64_t num_proposed, std::int64_t num_kept) {
  if (num_proposed <= 0) return;
  const double share = static_cast<double>(num_kept) / static_cast<double>(num_proposed);
  kept_share_ += kRate * (share - kept_share_);
  if (kept_share_ >= kWorthIt) return;
  paused_until_ = num_indexed_ + kPause;
  kept_share_ = kProbation;
}

}  // namespace spud::engine
