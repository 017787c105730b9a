// SPDX-License-Identifier: Apache-2.0
// What --isa asks for.
#pragma once

#include "base/result.hpp"
#include "kernels/kernel_table.hpp"
#include "spud/command.hpp"

namespace spud::app {

// The highest instruction set when nothing is asked for.
[[nodiscard]] Result<kernels::Isa> isa_of(const GlobalOptions& globals);

}  // namespace spud::app
