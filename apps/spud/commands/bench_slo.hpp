// SPDX-License-Identifier: Apache-2.0
// `spud bench MODEL --slo ...`: how many requests a second this machine serves within latency
// limits, and with which scheduler settings. A server is started in this process, an open loop of
// Poisson arrivals puts it under load, and bisection finds the highest rate at which 99 of 100
// requests meet every limit. Then the settings are varied one by one; a variation counts only when
// it carries a rate that is higher by more than the search's tolerance.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "spud/command.hpp"

namespace spud::app {

struct SloArguments {
  std::string model;
  std::string slo;
  std::int64_t prompt = 512;
  std::int64_t generate = 64;
  std::string trial = "15s";  // length of one try
  std::string out;            // YAML file for `spud serve -f`; "" = standard output
  std::string kv_type;
};

[[nodiscard]] Result<int> run_bench_slo(const SloArguments& arguments,
                                        const GlobalOptions& globals);

}  // namespace spud::app
