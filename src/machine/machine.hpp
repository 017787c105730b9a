// SPDX-License-Identifier: Apache-2.0
// What this machine can do, measured in about two seconds: the limits that a model's speed is held
// against. Best of many short runs, because a limit is what is possible when nobody disturbs.
//
// Reading is timed over buffers that each thread owns: half of its L2, its share of half of L3, and
// sixteen times L3 for memory; wide loads, huge pages where the kernel gives them, several streams,
// and the best pattern wins.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "concurrency/clock.hpp"
#include "kernels/kernel_table.hpp"
#include "machine/cpu_info.hpp"
#include "machine/limits.hpp"

namespace spud::machine {

struct MeasureOptions {
  int threads = 1;  // measured with one and with this many
  kernels::Isa isa_limit = kernels::Isa::kAvx512;
  std::chrono::milliseconds time_each{120};  // of each figure; a dozen of them
};

struct Machine {
  CpuInfo cpu;
  std::string instructions;   // "AVX-512 VNNI"
  std::string int_operation;  // "vpdpbusd zmm"
  Rates one;
  Rates all;  // of options.threads; equals `one` when that is one
};

Machine measure_machine(const MeasureOptions& options, const concurrency::Clock& clock);

}  // namespace spud::machine
