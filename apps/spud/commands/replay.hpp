// SPDX-License-Identifier: Apache-2.0
// `spud replay LOG MODEL`: runs logged requests again and proves that tokens and log-probs have the
// same bits.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_replay(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kReplayCommand{
    "replay", "Run logged requests again and compare every bit of the answers", &define_replay};

}  // namespace spud::app
