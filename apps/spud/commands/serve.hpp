// SPDX-License-Identifier: Apache-2.0
// `spud serve MODEL`: one model behind an OpenAI-compatible API, until a signal says stop.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_serve(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kServeCommand{"serve", "Serve a model behind an OpenAI-compatible API",
                                       &define_serve};

}  // namespace spud::app
