// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/special_tokens.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "tokenizer/utf8.hpp"

namespace spud::tokenizer {
namespace {

// Unicode's White_Space.
bool is_white_space(std::string_view character) {
  if (utf8_step(character).kind != Utf8Kind::kValid) return false;
  const char32_t c = utf8_decode(character);
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// Where the white space that ends at `end` begins, not before `limit`.
std::size_t white_space_before(std::string_view text, std::size_t limit, std::size_t end) {
  while (end > limit) {
    const std::size_t begin = utf8_step_back(text, end);
    if (begin < limit || !is_white_space(text.substr(begin, end - begin))) break;
    end = begin;
  }
  return end;
}

// Where the white space that begins at `begin` ends, not after `limit`.
std::size_t white_space_after(std::string_view text, std::size_t begin, std::size_t limit) {
  while (begin < limit) {
    const std::size_t length = utf8_step(text.substr(begin, limit - begin)).length;
    if (!is_white_space(text.substr(begin, length))) break;
    begin += length;
  }
  return begin;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary)
    : strip_left_(vocabulary.strip_left()), strip_right_(vocabulary.strip_right()) {
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
  for (auto it = taken.begin(); it != taken.end(); ++it) {
    const Match& match = it->second;
    const auto next = std::next(it);
    std::size_t begin = match.begin;
    std::size_t end = match.begin + match.length;
    if (std::ranges::binary_search(strip_left_, match.token)) {
      begin = white_space_before(text, at, begin);
    }
    if (std::ranges::binary_search(strip_right_, match.token)) {
      end = white_space_after(text, end, next == taken.end() ? text.size() : next->first);
    }
    if (begin > at) fragments.push_back({at, begin, kNoToken});
    fragments.push_back({begin, end, match.token});
    at = end;
  }
  if (at < text.size()) fragments.push_back({at, text.size(), kNoToken});
  return fragments;
}

}  // namespace spud::tokenizer
