// SPDX-License-Identifier: Apache-2.0
// The table of subcommands.
#pragma once

#include <span>

#include "spud/command.hpp"

namespace spud::app {

std::span<const Command> builtin_commands();

}  // namespace spud::app
