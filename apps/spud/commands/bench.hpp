// SPDX-License-Identifier: Apache-2.0
// `spud bench MODEL`: prefill and decode speed in this process, median and spread of repeats.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_bench(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kBenchCommand{"bench", "Measure how fast a model runs here",
                                       &define_bench};

}  // namespace spud::app
