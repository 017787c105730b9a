// SPDX-License-Identifier: Apache-2.0
// `spud shrink MODEL --recipe NAME|FILE --out DIR`: makes a model smaller step by step, each step
// under a gate, and leaves artifact, certificate, report and journal in DIR. The same command again
// goes on where a stopped one was; `spud shrink --status --out DIR` only looks.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_shrink(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kShrinkCommand{
    "shrink", "Make a model smaller step by step, each step under a quality gate", &define_shrink};

}  // namespace spud::app
