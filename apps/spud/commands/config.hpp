// SPDX-License-Identifier: Apache-2.0
// `spud config schema recipe|serve`: the JSON schema of a YAML file we read.
// `spud config show recipe|serve`: its defaults as YAML.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_config(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kConfigCommand{
    "config", "Print the JSON schema or the defaults of a configuration file", &define_config};

}  // namespace spud::app
