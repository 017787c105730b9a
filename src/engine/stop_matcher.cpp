// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace spud::engine {
namespace {

// Length of the longest end of `text` that is a proper beginning of `stop`.
std::size_t open_length(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopMatcher::push(std::string_view text) {
  if (stops_.empty()) return std::string(text);
  held_ += text;
  std::size_t best_end = std::string::npos;
  const std::string* best = nullptr;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t end = at + stop.size();
    if (best == nullptr || end < best_end || (end == best_end && stop.size() > best->size())) {
      best_end = end;
      best = &stop;
    }
  }
  if (best != nullptr) {
    matched_ = *best;
    std::string before = held_.substr(0, best_end - best->size());
    held_.clear();
    return before;
  }
  std::size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, open_length(held_, stop));
  std::string certain = held_.substr(0, held_.size() - keep);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace spud::engine
