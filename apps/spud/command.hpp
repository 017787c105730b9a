// SPDX-License-Identifier: Apache-2.0
// One subcommand of `spud` = one file in commands/ that fills in a Command, and one line in
// commands.cpp. `define` adds options to its CLI11 sub-command and returns what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>

#include "base/result.hpp"

namespace spud::app {

// Exit codes, after sysexits.h where one fits.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // the work was done and the answer is no (gate refused, bad file)
inline constexpr int kExitUsage = 64;   // the command line is wrong
inline constexpr int kExitInterrupted = 130;

// Flags every command has (parsed by main before `run`).
struct GlobalOptions {
  bool json = false;      // machine-readable result on standard output
  bool quiet = false;     // no progress
  int threads = 0;        // 0 = from the CPU budget
  std::string isa;        // "", "scalar", "avx2", "avx512"
};

// The exit code, or an error: main prints it as one sentence (or a JSON object with --json) to
// standard error and exits with kExitFailure.
using CommandAction = std::function<Result<int>()>;

struct Command {
  std::string_view name;
  std::string_view summary;
  CommandAction (*define)(CLI::App& sub, const GlobalOptions& globals);
};

}  // namespace spud::app
