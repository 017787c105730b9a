// SPDX-License-Identifier: Apache-2.0
// The few largest of a row's logits, kept while they are computed. Nearly every value fails the
// comparison with the smallest that is kept, which a kernel does for a tile at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "model/model.hpp"

namespace spud::model {

// One thread's share of a row. Not thread-safe.
class TopLogits {
 public:
  TopLogits() = default;  // keeps nothing
  // What is in `found.top` already, perhaps by others, spares looking at smaller ones.
  explicit TopLogits(const LogitSummary& found);

  // `n` logits, at most kernels::kLogitTile, of the tokens from `first` on.
  void add(const kernels::KernelTable& kernels, const float* logits, std::int64_t n, TokenId first);
  // Adds what is here to `top`, the largest first; of equals the smaller token first.
  void merge_into(std::vector<TopLogit>& top) const;

 private:
  std::size_t limit_ = 0;
  std::vector<TopLogit> top_;  // sorted
  float least_ = 0;            // values below it are not among the largest
};

}  // namespace spud::model
