// SPDX-License-Identifier: Apache-2.0
// `spud load URL`: how a server behaves under a stream of requests.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_load(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kLoadCommand{
    "load", "Put a server under load: latency percentiles, rates, goodput", define_load};

}  // namespace spud::app
