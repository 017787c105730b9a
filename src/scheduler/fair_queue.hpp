// SPDX-License-Identifier: Apache-2.0
// Weighted fair queueing over tenants (start-time fair queueing, Goyal et al. 1996): each tenant
// has a virtual time that advances by what its work costs divided by its weight, and whoever is
// furthest behind goes next. Who was idle starts at the present, not in the past: nobody saves up a
// right to the machine, and nobody who comes back is punished for what it used when nobody else
// wanted it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>

namespace spud::scheduler {

// Not thread-safe.
class FairQueue {
 public:
  // Once per tenant that has work, before the step is planned.
  void activate(std::uint32_t tenant, double weight) {
    Entry& entry = entries_[tenant];
    entry.weight = std::max(weight, kLeastWeight);
    if (!entry.was_active) entry.time = std::max(entry.time, now_);
    entry.active = true;
  }
  void charge(std::uint32_t tenant, double cost) {
    Entry& entry = entries_[tenant];
    entry.time += cost / entry.weight;
  }
  double time(std::uint32_t tenant) const { return entries_.at(tenant).time; }
  double weight(std::uint32_t tenant) const { return entries_.at(tenant).weight; }

  // After the step is planned. Those without work are forgotten once the others caught up.
  void end_step() {
    double earliest = kNever;
    for (const auto& [tenant, entry] : entries_) {
      if (entry.active) earliest = std::min(earliest, entry.time);
    }
    if (earliest != kNever) now_ = std::max(now_, earliest);
    for (auto at = entries_.begin(); at != entries_.end();) {
      Entry& entry = at->second;
      entry.was_active = entry.active;
      entry.active = false;
      at = !entry.was_active && entry.time <= now_ ? entries_.erase(at) : std::next(at);
    }
  }

 private:
  static constexpr double kNever = 1e300;
  static constexpr double kLeastWeight = 1e-3;
  struct Entry {
    double time = 0;
    double weight = 1;
    bool active = false;
    bool was_active = false;  // in the step before
  };
  std::unordered_map<std::uint32_t, Entry> entries_;
  double now_ = 0;  // virtual
};

}  // namespace spud::scheduler
