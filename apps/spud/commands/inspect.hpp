// SPDX-License-Identifier: Apache-2.0
// `spud inspect MODEL`: what is in a model file and what is wrong with it. Reads no weights, so it
// answers at once for a file of any size. Exit code 1 when something is wrong.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_inspect(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kInspectCommand{
    "inspect", "Show what is in a model file, and what is wrong with it", &define_inspect};

}  // namespace spud::app
