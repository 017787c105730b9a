// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.hpp"

#include <algorithm>
#include <vector>

namespace spud {
namespace {

// Optimal string alignment distance; words longer than this are cut, so a hostile key is cheap.
constexpr std::size_t kMaxCompared = 64;
constexpr std::size_t kMaxListed = 20;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMaxCompared);
  b = b.substr(0, kMaxCompared);
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replace, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string_view> nearest_word(std::string_view word,
                                             std::span<const std::string_view> known) {
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion_text(std::string_view word, std::span<const std::string_view> known) {
  std::string list;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i == kMaxListed) {
      list += ", ...";
      break;
    }
    if (i > 0) list += ", ";
    list += known[i];
  }
  if (const auto nearest = nearest_word(word, known)) {
    return "; did you mean '" + std::string(*nearest) + "'? (known: " + list + ")";
  }
  return "; known: " + list;
}

}  // namespace spud
