// SPDX-License-Identifier: Apache-2.0
// Which CPU this is, for a report that others read later: a ratio holds for a kind of machine. What
// a virtual machine says about its caches may be more than it gets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace spud::machine {

struct CpuInfo {
  std::string model;  // "AMD EPYC 9R14", as the CPU says; "unknown CPU" when it does not
  std::string microarchitecture;  // "Zen 4"; "" when it is not in our table
  int cpus = 1;                   // that this process may use
  std::uint64_t l1_bytes = 0;     // of one core, data
  std::uint64_t l2_bytes = 0;     // of one core
  std::uint64_t l3_bytes = 0;     // shared; 0 = none
};

// `root` is where /proc and /sys lie, for tests.
CpuInfo read_cpu_info(const std::filesystem::path& root = "/");

}  // namespace spud::machine
