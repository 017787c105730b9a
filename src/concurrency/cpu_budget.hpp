// SPDX-License-Identifier: Apache-2.0
// How many threads and how much memory this process may really use: CPU affinity and the cgroup's
// cpu.max and memory.max (v2, v1 as fallback), not what the machine has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace spud::concurrency {

struct CpuBudget {
  int threads = 1;       // min(affinity, floor(cpu.max)), at least 1
  int most_threads = 1;  // min(affinity, ceil(cpu.max)): more only take turns, or are throttled
  std::string reason;    // "2 of 2 CPUs by affinity; the cgroup's quota allows 1.5"
  std::optional<std::uint64_t> memory_limit_bytes;  // cgroup limit, if any
};

// `root` is where /proc and /sys lie, for tests.
CpuBudget read_cpu_budget(const std::filesystem::path& root = "/");

struct ThreadChoice {
  int threads = 1;
  std::string reason;  // for the log: who chose, and what cut it down
};

// `asked` threads (0 = as many as the budget says), but no more than can run at the same time:
// threads that meet at a barrier hundreds of times a step wait for the one that has no CPU.
ThreadChoice choose_threads(std::int64_t asked, const CpuBudget& budget);

}  // namespace spud::concurrency
