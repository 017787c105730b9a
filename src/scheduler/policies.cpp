// SPDX-License-Identifier: Apache-2.0
#include "scheduler/policies.hpp"

#include <array>

#include "base/registry.hpp"

namespace spud::scheduler {
namespace {

constexpr auto kPolicies = make_registry<Policy>({
    {.name = "fair",
     .summary = "Steps under a time budget, tenants by weight, priorities, early refusals",
     .make = &make_fair_scheduler},
    {.name = "fifo",
     .summary = "First come, first served; memory reserved for the worst case",
     .make = &make_fifo_scheduler},
    {.name = "batch",
     .summary = "As fair, but one-shot requests are gathered into batches",
     .make = &make_batch_scheduler},
});

constexpr auto kNames = [] {
  std::array<std::string_view, kPolicies.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kPolicies[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> policy_names() { return kNames; }

std::span<const Policy> builtin_policies() { return kPolicies; }

Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                  const SchedulerOptions& options) {
  SPUD_TRY(options.validate());
  SPUD_TRY(const Policy* policy, find_in_registry(builtin_policies(), "scheduler", name));
  return policy->make(options);
}

}  // namespace spud::scheduler
