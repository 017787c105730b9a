// SPDX-License-Identifier: Apache-2.0
// From tenants to a list of requests with times, before anything is sent: the same seed gives the
// same list, and sending needs no dice.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "loadgen/outcome.hpp"
#include "loadgen/tenant.hpp"

namespace spud::loadgen {

struct Planned {
  Nanoseconds at{0};  // since the run began; of a closed loop: unused
  std::uint16_t tenant = 0;
  std::int64_t prompt_tokens = 0;  // without the shared prefix
  std::int64_t output_tokens = 0;
  std::uint64_t seed = 0;  // of the prompt's words
};

// A run longer than this is refused: every request is remembered until the report.
inline constexpr std::size_t kMaxPlanned = 1 << 20;

struct Plan {
  std::vector<Planned> open;  // all open tenants, in order of time
  // Of closed tenants, what their clients take one after another; by tenant, empty for open ones.
  std::vector<std::vector<Planned>> closed;
};

// `duration`: no arrivals after it. A closed tenant without a number of requests gets enough for
// any server (and the runner stops it at the duration).
[[nodiscard]] Result<Plan> make_plan(const std::vector<TenantOptions>& tenants,
                                     Nanoseconds duration, std::uint64_t seed);

}  // namespace spud::loadgen
