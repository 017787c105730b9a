// SPDX-License-Identifier: Apache-2.0
// `spud eval MODEL [--against REF]`: perplexity, and with a reference also the divergence from it,
// each with an interval; `--choices` adds multiple-choice accuracy.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_eval(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kEvalCommand{
    "eval", "Measure how good a model is, alone or against another", &define_eval};

}  // namespace spud::app
