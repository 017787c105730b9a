// SPDX-License-Identifier: Apache-2.0
// How long answers were lately, for guesses of how long those under way will be. Not a prediction
// of one answer: nobody knows when a model stops.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spud::scheduler {

// Not thread-safe.
class LengthHistory {
 public:
  void add(std::int64_t tokens) {
    if (lengths_.size() < kSize) {
      lengths_.push_back(tokens);
    } else {
      lengths_[next_++ % kSize] = tokens;
    }
    sorted_ = lengths_;
    std::ranges::sort(sorted_);
  }

  // Tokens that will still come after `done`, by the answers that were longer than that: half of
  // them had no more. Where there were none, as many again as there are.
  std::int64_t median_rest(std::int64_t done) const {
    const auto longer = std::ranges::upper_bound(sorted_, done);
    const auto count = sorted_.end() - longer;
    if (count == 0) return std::max<std::int64_t>(done, 1);
    return longer[count / 2] - done;
  }

 private:
  static constexpr std::size_t kSize = 128;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> sorted_;
  std::size_t next_ = 0;  // to overwrite, once full
};

}  // namespace spud::scheduler
