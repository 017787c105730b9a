// SPDX-License-Identifier: Apache-2.0
// The machine's limits as `spud bench` prints them, and a measured speed beside the one that
// applies to it.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "engine/step_work.hpp"
#include "machine/machine.hpp"

namespace spud::app {

void print_machine(const machine::Machine& machine);
boost::json::object machine_to_json(const machine::Machine& machine);

// One measurement: `streams` = 0 is a prefill of `tokens`, else decoding `tokens` each after
// `depth`.
struct Measured {
  std::int64_t streams = 0;
  std::int64_t tokens = 0;
  std::int64_t depth = 0;
};

// The most tokens per second the machine allows for it.
struct SpeedLimit {
  double tokens_per_s = 0;
  machine::Bound bound = machine::Bound::kMemory;
};
SpeedLimit speed_limit(const Measured& measured, const engine::StepWork& work,
                       const machine::Rates& rates);

}  // namespace spud::app
