// SPDX-License-Identifier: Apache-2.0
// Every scheduling policy by name. To add one: a file beside these, a line in policies.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "scheduler/scheduler.hpp"

namespace spud::scheduler {

struct Policy {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Scheduler> (*make)(const SchedulerOptions& options);
};

std::span<const Policy> builtin_policies();
std::span<const std::string_view> policy_names();

// kNotFound for an unknown name, kInvalidArgument for options that cannot work.
[[nodiscard]] Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view name,
                                                                const SchedulerOptions& options);

}  // namespace spud::scheduler
