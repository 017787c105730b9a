// SPDX-License-Identifier: Apache-2.0
// Do two documents share a run of 13 words (or, for sampled token sequences, 13 tokens)? That is
// the usual sign that one text leaked into another split. Words are compared in lower case without
// punctuation; runs are compared by 64-bit hash (a false hit in 10^6 runs: about 3 in 10^8).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "quality/dataset.hpp"

namespace spud::quality::internal {

inline constexpr std::size_t kSharedRun = 13;

struct OverlapPair {
  std::size_t first;
  std::size_t second;
};
// All pairs (first < second) found, each at least once per shared run with the run's first owner.
std::vector<OverlapPair> find_overlaps(std::span<const Document> documents);

}  // namespace spud::quality::internal
