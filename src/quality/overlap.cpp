// SPDX-License-Identifier: Apache-2.0
#include "quality/overlap.hpp"

#include <cstdint>
#include <unordered_map>

namespace spud::quality::internal {
namespace {

std::uint64_t mix(std::uint64_t x) noexcept {  // the finaliser of SplitMix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

bool is_word_byte(unsigned char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

std::vector<std::uint64_t> units_of(const Document& document) {
  std::vector<std::uint64_t> units;
  for (const TokenId token : document.tokens)
    units.push_back(mix(static_cast<std::uint32_t>(token)));
  std::uint64_t word = 0;
  for (const char raw : document.text) {
    const auto c = static_cast<unsigned char>(raw);
    if (is_word_byte(c)) {
      word = mix(word ^ (c >= 'A' && c <= 'Z' ? c + 32U : c));
    } else if (word != 0) {
      units.push_back(word);
      word = 0;
    }
  }
  if (word != 0) units.push_back(word);
  return units;
}

}  // namespace

std::vector<OverlapPair> find_overlaps(std::span<const Document> documents) {
  std::unordered_map<std::uint64_t, std::size_t> owner;
  std::vector<OverlapPair> pairs;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const auto units = units_of(documents[d]);
    for (std::size_t i = 0; i + kSharedRun <= units.size(); ++i) {
      std::uint64_t run = 0;
      for (std::size_t j = 0; j < kSharedRun; ++j) run = mix(run ^ units[i + j]);
      const auto [place, added] = owner.try_emplace(run, d);
      if (!added && place->second != d) pairs.push_back({place->second, d});
    }
  }
  return pairs;
}

}  // namespace spud::quality::internal
