// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/special_tokens.hpp"

#include <algorithm>
#include <map>
#include <queue>

namespace spud::tokenizer {

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) {
  nodes_.emplace_back();
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const bool control = vocabulary.needs_parse_special(id);
    if (!control && vocabulary.type(id) != TokenType::kUserDefined) continue;
    if (!vocabulary.text(id).empty()) insert(vocabulary.text(id), id, control);
  }
}

void SpecialTokens::insert(std::string_view text, TokenId token, bool control) {
  starts_[static_cast<std::uint8_t>(text[0])] = true;
  std::int32_t node = 0;
  for (const char byte : text) {
    std::int32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<std::int32_t>(nodes_.size());
      Node added;
      added.byte = byte;
      added.next_sibling = nodes_[static_cast<std::size_t>(node)].first_child;
      nodes_.push_back(added);
      nodes_[static_cast<std::size_t>(node)].first_child = next;
    }
    node = next;
  }
  nodes_[static_cast<std::size_t>(node)].token = token;
  nodes_[static_cast<std::size_t>(node)].control = control;
}

std::int32_t SpecialTokens::child(std::int32_t node, char byte) const noexcept {
  std::int32_t next = nodes_[static_cast<std::size_t>(node)].first_child;
  while (next != 0 && nodes_[static_cast<std::size_t>(next)].byte != byte) {
    next = nodes_[static_cast<std::size_t>(next)].next_sibling;
  }
  return next;
}

SpecialTokens::Match SpecialTokens::longest_match(std::string_view text, std::size_t begin,
                                                  std::size_t limit,
                                                  std::size_t control_limit) const noexcept {
  Match best{begin, 0, kNoToken};
  std::int32_t node = 0;
  for (std::size_t i = begin; i < limit; ++i) {
    node = child(node, text[i]);
    if (node == 0) break;
    const Node& at = nodes_[static_cast<std::size_t>(node)];
    if (at.token == kNoToken || (at.control && i + 1 > control_limit)) continue;
    best.length = i + 1 - begin;
    best.token = at.token;
  }
  return best;
}

std::vector<Fragment> SpecialTokens::split(std::string_view text, bool parse_special,
                                           std::span<const TextRange> literal) const {
  // Up to where a control token that begins at a position may reach; 0 inside a literal range.
  std::vector<std::pair<std::size_t, std::size_t>> control_limits;  // begin of range -> limit
  if (!parse_special) {
    control_limits.emplace_back(0, 0);
  } else {
    std::size_t at = 0;
    for (const TextRange& range : literal) {
      if (range.begin >= range.end) continue;
      control_limits.emplace_back(at, range.begin);
      control_limits.emplace_back(range.begin, 0);
      at = range.end;
    }
    control_limits.emplace_back(at, text.size());
  }
  const auto control_limit = [&](std::size_t begin) {
    const auto after = std::ranges::upper_bound(control_limits, begin, {},
                                                &std::pair<std::size_t, std::size_t>::first);
    return std::prev(after)->second;
  };

  // The longest match of each position competes; a position whose longest match is taken away from
  // the right comes back with a shorter one. So every position is in the queue at most once.
  const auto later = [](const Match& a, const Match& b) {
    if (a.length != b.length) return a.length < b.length;
    if (a.token != b.token) return a.token > b.token;
    return a.begin > b.begin;
  };
  std::vector<Match> found;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!starts_[static_cast<std::uint8_t>(text[i])]) continue;
    const Match match = longest_match(text, i, text.size(), control_limit(i));
    if (match.token != kNoToken) found.push_back(match);
  }
  std::priority_queue queue(later, std::move(found));
  std::map<std::size_t, Match> taken;  // by begin
  while (!queue.empty()) {
    const Match match = queue.top();
    queue.pop();
    const auto after = taken.lower_bound(match.begin);
    if (after != taken.end() && after->first == match.begin) continue;
    if (after != taken.begin()) {
      const Match& before = std::prev(after)->second;
      if (before.begin + before.length > match.begin) continue;
    }
    if (after != taken.end() && after->first < match.begin + match.length) {
      const Match shorter =
          longest_match(text, match.begin, after->first, control_limit(match.begin));
      if (shorter.token != kNoToken) queue.push(shorter);
      continue;
    }
    taken.emplace_hint(after, match.begin, match);
  }

  std::vector<Fragment> fragments;
  std::size_t at = 0;
  for (const auto& [begin, match] : taken) {
    if (begin > at) fragments.push_back({at, begin, kNoToken});
    at = begin + match.length;
    fragments.push_back({begin, at, match.token});
  }
  if (at < text.size()) fragments.push_back({at, text.size(), kNoToken});
  return fragments;
}

}  // namespace spud::tokenizer
