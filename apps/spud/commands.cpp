// SPDX-License-Identifier: Apache-2.0
// Every subcommand: one line here, one file in commands/.
#include "spud/commands.hpp"

#include "base/registry.hpp"
#include "spud/commands/config.hpp"
#include "spud/commands/fetch.hpp"

namespace spud::app {
namespace {

constexpr auto kCommands = make_registry<Command>({
    kConfigCommand,
    kFetchCommand,
});

}  // namespace

std::span<const Command> builtin_commands() { return kCommands; }

}  // namespace spud::app
