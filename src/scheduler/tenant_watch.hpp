// SPDX-License-Identifier: Apache-2.0
// Whether tenants share the machine. Who sends a short request now and then is not here when a step
// is planned that its next request will wait for: a tenant counts for a while after it was seen.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "scheduler/scheduler.hpp"

namespace spud::scheduler::internal {

// Not thread-safe.
class TenantWatch {
 public:
  // Before each step.
  void look(const SchedulerInput& input) {
    for (const RunningView& view : input.running) see(view.who.tenant, input.now);
    for (const WaitingView& view : input.waiting) see(view.who.tenant, input.now);
    shared_ = shared_until_ && input.now < *shared_until_;
  }
  // Two tenants are here, or were within kMemory of each other and now.
  bool shared() const { return shared_; }

 private:
  static constexpr std::chrono::minutes kMemory{1};

  void see(std::uint32_t tenant, SteadyTime now) {
    if (latest_ && tenant != *latest_ && now - latest_seen_ < kMemory) {
      shared_until_ = now + kMemory;
    }
    latest_ = tenant;
    latest_seen_ = now;
  }

  std::optional<std::uint32_t> latest_;
  SteadyTime latest_seen_;
  std::optional<SteadyTime> shared_until_;
  bool shared_ = false;
};

}  // namespace spud::scheduler::internal
