// SPDX-License-Identifier: Apache-2.0
// One subcommand of `spud` = commands/<name>.{hpp,cpp} with a constexpr Command, and one line in
// commands.cpp. `define` adds options to its CLI11 sub-command and returns what to run.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace CLI {
class App;
}

namespace spud::app {

// Exit codes, after sysexits.h where one fits.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // it ran and the answer is no (gate refused, bad file)
inline constexpr int kExitUsage = 64;   // the command line is wrong
inline constexpr int kExitInterrupted = 130;

// Flags every command has; filled when `run` is called.
struct GlobalOptions {
  bool json = false;   // machine-readable result on standard output
  bool quiet = false;  // no progress
  int threads = 0;     // 0 = from the CPU budget
  std::string isa;     // "" = best; "scalar", "avx2", "avx512"
};

// The exit code, or an error: main prints it as one sentence (or a JSON object with --json) to
// standard error and exits with kExitFailure.
using CommandAction = std::function<Result<int>()>;

struct Command {
  std::string_view name;
  std::string_view summary;
  CommandAction (*define)(CLI::App& sub, const GlobalOptions& globals) = nullptr;
};

}  // namespace spud::app
