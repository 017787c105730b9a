// SPDX-License-Identifier: Apache-2.0
// The loop both kinds share: neighbouring symbols merge, best pair first, leftmost among equals,
// until no pair merges. A doubly linked list and a heap with lazy deletion make it O(n log n), so
// that a word of a megabyte is slow for no one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer {

struct MergeSymbol {
  std::int32_t begin = 0;  // bytes of the text
  std::int32_t length = 0;
  TokenId token = -1;  // -1: no token of its own, merges with nothing
  std::int32_t previous = -1;
  std::int32_t next = -1;  // -1: last
};

template <typename Rank>
struct MergeCandidate {
  Rank rank{};  // smaller merges first
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t length = 0;  // of both; differs from the symbols' when the candidate is stale
  TokenId token = -1;       // what the pair becomes
};

// `pair(left, right)` says what two neighbours merge into: an optional of {rank, token}. `symbols`
// come in order and linked; merged ones are left with length 0.
template <typename Rank, typename PairFunction>
void merge_symbols(std::vector<MergeSymbol>& symbols, const PairFunction& pair) {
  using Candidate = MergeCandidate<Rank>;
  const auto at = [&](std::int32_t i) -> MergeSymbol& {
    return symbols[static_cast<std::size_t>(i)];
  };
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  std::vector<Candidate> heap;
  const auto candidate = [&](std::int32_t left, std::int32_t right) -> std::optional<Candidate> {
    if (left < 0 || right < 0) return std::nullopt;
    const auto merged = pair(at(left), at(right));
    if (!merged) return std::nullopt;
    return Candidate{merged->first, left, right, at(left).length + at(right).length,
                     merged->second};
  };
  const auto push = [&](std::int32_t left, std::int32_t right) {
    if (const auto made = candidate(left, right)) {
      heap.push_back(*made);
      std::ranges::push_heap(heap, later);
    }
  };
  for (std::size_t i = 1; i < symbols.size(); ++i) {
    const auto right = static_cast<std::int32_t>(i);
    if (const auto made = candidate(right - 1, right)) heap.push_back(*made);
  }
  std::ranges::make_heap(heap, later);
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, later);
    const Candidate best = heap.back();
    heap.pop_back();
    MergeSymbol& left = at(best.left);
    MergeSymbol& right = at(best.right);
    if (left.length == 0 || right.length == 0 || left.length + right.length != best.length) {
      continue;
    }
    left.length = best.length;
    left.token = best.token;
    right.length = 0;
    left.next = right.next;
    if (right.next >= 0) at(right.next).previous = best.left;
    push(left.previous, best.left);
    push(best.left, left.next);
  }
}

}  // namespace spud::tokenizer
