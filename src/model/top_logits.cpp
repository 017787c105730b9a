// SPDX-License-Identifier: Apache-2.0
#include "model/top_logits.hpp"

#include <algorithm>
#include <limits>

namespace spud::model {
namespace {

bool comes_before(const TopLogit& a, const TopLogit& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void insert(std::vector<TopLogit>& top, std::size_t limit, const TopLogit& entry) {
  if (top.size() == limit && !comes_before(entry, top.back())) return;
  if (top.size() == limit) top.pop_back();
  top.insert(std::ranges::upper_bound(top, entry, comes_before), entry);
}

}  // namespace

TopLogits::TopLogits(const LogitSummary& found)
    : limit_(static_cast<std::size_t>(std::max(found.top_count, 1))),
      least_(found.top.size() < limit_ ? -std::numeric_limits<float>::infinity()
                                       : found.top.back().logit) {}

void TopLogits::add(const kernels::KernelTable& kernels, const float* logits, std::int64_t n,
                    TokenId first) {
  std::int32_t found[kernels::kLogitTile];
  const std::int64_t count = kernels.find_at_least(logits, n, least_, found);
  for (std::int64_t i = 0; i < count; ++i) {
    insert(top_, limit_, {.token = first + found[i], .logit = logits[found[i]]});
  }
  if (top_.size() == limit_) least_ = std::max(least_, top_.back().logit);
}

void TopLogits::merge_into(std::vector<TopLogit>& top) const {
  for (const TopLogit& entry : top_) insert(top, limit_, entry);
}

}  // namespace spud::model
