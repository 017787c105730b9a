// SPDX-License-Identifier: Apache-2.0
// Every subcommand: one line here, one file in commands/.
#include "spud/commands.hpp"

#include "base/registry.hpp"
#include "spud/commands/bench.hpp"
#include "spud/commands/chat.hpp"
#include "spud/commands/config.hpp"
#include "spud/commands/eval.hpp"
#include "spud/commands/fetch.hpp"
#include "spud/commands/inspect.hpp"
#include "spud/commands/load.hpp"
#include "spud/commands/replay.hpp"
#include "spud/commands/serve.hpp"
#include "spud/commands/shrink.hpp"

namespace spud::app {
namespace {

constexpr auto kCommands = make_registry<Command>({
    kBenchCommand,
    kChatCommand,
    kConfigCommand,
    kEvalCommand,
    kFetchCommand,
    kInspectCommand,
    kLoadCommand,
    kReplayCommand,
    kServeCommand,
    kShrinkCommand,
});

}  // namespace

std::span<const Command> builtin_commands() { return kCommands; }

}  // namespace spud::app
