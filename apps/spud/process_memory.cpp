// SPDX-License-Identifier: Apache-2.0
#include "spud/process_memory.hpp"

#include <fstream>
#include <string>

namespace spud::app {

ProcessMemory read_process_memory() {
  constexpr std::uint64_t kKib = 1024;
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) memory.anonymous = kib * kKib;
    // Code and what it reads; libraries are in VmLib.
    if ((word == "VmExe:" || word == "VmLib:") && status >> kib) memory.program_text += kib * kKib;
  }
  return memory;
}

}  // namespace spud::app
