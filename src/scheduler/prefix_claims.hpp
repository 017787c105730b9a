// SPDX-License-Identifier: Apache-2.0
// What the cached pages of a prompt cost a plan that admits it. A page that some sequence holds
// costs nothing; one that only the prefix cache holds is among the free pages until somebody takes
// it, and costs one, but for the first of those that the plan lets in only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "scheduler/scheduler.hpp"

namespace spud::scheduler::internal {

// Lives during one call of plan().
class PrefixClaims {
 public:
  std::int64_t cost(const CachedPrefix& prefix) const {
    return std::ranges::count_if(prefix.idle,
                                 [this](std::uint32_t page) { return !taken_.contains(page); });
  }
  void claim(const CachedPrefix& prefix) { taken_.insert(prefix.idle.begin(), prefix.idle.end()); }

 private:
  std::unordered_set<std::uint32_t> taken_;
};

}  // namespace spud::scheduler::internal
