// SPDX-License-Identifier: Apache-2.0
// KV pages as numbers, with a prefix cache as the engine has one: full pages of a common prefix are
// known once they are computed, shared by who holds them, kept when nobody does, and given up, the
// last ones first, when pages are needed. Says when a page is taken that is not there. For tests
// only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "scheduler/scheduler.hpp"

namespace spud::scheduler {

class SimulatedPages {
 public:
  // What one sequence holds: `shared` pages of its prefix, then `own` ones.
  struct Held {
    std::int64_t shared = 0;
    std::int64_t own = 0;
    std::int64_t all() const { return shared + own; }
  };
  // Common beginning of some requests: a number of it, and its whole pages.
  struct Prefix {
    std::uint32_t number = 0;
    std::int64_t pages = 0;
  };

  explicit SimulatedPages(std::int64_t total) : total_(total), free_(total) {}

  std::int64_t available() const { return free_ + num_idle_; }
  bool all_back() const { return num_idle_ == std::ssize(cached_) && free_ + num_idle_ == total_; }
  std::int64_t num_evicted() const { return num_evicted_; }

  CachedPrefix look_up(Prefix prefix) const {
    CachedPrefix found;
    for (; found.pages < prefix.pages; ++found.pages) {
      const auto at = cached_.find({prefix.number, found.pages});
      if (at == cached_.end()) break;
      if (at->second.holders == 0) found.idle.push_back(at->second.page);
    }
    return found;
  }
  void attach(Prefix prefix, Held& held) {
    for (; held.shared < prefix.pages; ++held.shared) {
      const auto at = cached_.find({prefix.number, held.shared});
      if (at == cached_.end()) return;
      if (at->second.holders++ == 0) --num_idle_;
    }
  }
  void grow(Held& held, std::int64_t pages) {
    const std::int64_t more = std::max<std::int64_t>(pages - held.all(), 0);
    ASSERT_LE(more, available()) << "a page that is not there";
    while (free_ < more) evict();
    free_ -= more;
    held.own += more;
  }
  void publish(Prefix prefix, std::int64_t full_pages, Held& held) {
    while (held.shared < std::min(prefix.pages, full_pages)) {
      const auto [at, added] = cached_.try_emplace({prefix.number, held.shared});
      if (added) {
        at->second.page = next_page_++;
      } else {
        ++free_;  // its twin is known
        if (at->second.holders == 0) --num_idle_;
      }
      ++at->second.holders;
      ++held.shared;
      --held.own;
    }
  }
  void release(Prefix prefix, Held& held) {
    for (std::int64_t i = 0; i < held.shared; ++i) {
      if (--cached_.at({prefix.number, i}).holders == 0) ++num_idle_;
    }
    free_ += held.own;
    held = {};
  }
  std::int64_t exclusive(Prefix prefix, const Held& held) const {
    std::int64_t count = held.own;
    for (std::int64_t i = 0; i < held.shared; ++i) {
      count += cached_.at({prefix.number, i}).holders == 1 ? 1 : 0;
    }
    return count;
  }

 private:
  struct Page {
    std::uint32_t page = 0;
    std::int64_t holders = 0;
  };

  void evict() {
    for (auto at = cached_.rbegin(); at != cached_.rend(); ++at) {
      if (at->second.holders > 0) continue;
      cached_.erase(std::next(at).base());
      --num_idle_;
      ++free_;
      ++num_evicted_;
      return;
    }
    FAIL() << "nothing to give up";
  }

  std::int64_t total_;
  std::int64_t free_;
  std::int64_t num_idle_ = 0;
  std::int64_t num_evicted_ = 0;
  std::uint32_t next_page_ = 0;
  std::map<std::pair<std::uint32_t, std::int64_t>, Page> cached_;
};

}  // namespace spud::scheduler
