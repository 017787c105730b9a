// SPDX-License-Identifier: Apache-2.0
// What this process holds in memory at the moment, as the kernel counts it.
#pragma once

#include <cstdint>

namespace spud::app {

struct ProcessMemory {
  std::uint64_t anonymous = 0;     // resident bytes that no file stands behind
  std::uint64_t program_text = 0;  // of the program's own file
};

// Zeros where /proc cannot be read.
ProcessMemory read_process_memory();

}  // namespace spud::app
