// SPDX-License-Identifier: Apache-2.0
// `spud chat [URL or MODEL]`: talk to a server, or to a model file served in this process.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_chat(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kChatCommand{"chat", "Talk to a model or a server", &define_chat};

}  // namespace spud::app
