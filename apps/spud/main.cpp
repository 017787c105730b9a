// SPDX-License-Identifier: Apache-2.0
// The program: finds the subcommand, parses its options, runs it and turns errors into one sentence
// and an exit code. The only place where exceptions of the command line library end.
#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <csignal>
#include <cstdio>

#include "base/registry.hpp"
#include "base/suggest.hpp"
#include "base/version.hpp"
#include "spud/commands.hpp"

namespace spud::app {
namespace {

constexpr std::string_view kIsaNames[] = {"scalar", "avx2", "avx512"};

void add_global_options(CLI::App& sub, GlobalOptions& globals) {
  sub.add_flag("--json", globals.json, "Print the result as JSON on standard output");
  sub.add_flag("-q,--quiet", globals.quiet, "Show no progress");
  sub.add_option("-t,--threads", globals.threads,
                 "Threads; 0 = what CPU affinity and the cgroup allow")
      ->check(CLI::Range(0, 1024));
  sub.add_option("--isa", globals.isa, "Highest instruction set to use (scalar, avx2, avx512)")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kIsaNames), std::end(kIsaNames))));
}

void print_error(const Error& error, bool json) {
  if (json) {
    const boost::json::object body{
        {"error", {{"code", to_string(error.code())}, {"message", error.message()}}}};
    std::fprintf(stderr, "%s\n", boost::json::serialize(body).c_str());
    return;
  }
  std::fprintf(stderr, "spud: %s\n", error.message().c_str());
}

int usage_error(std::string_view message, std::string_view command) {
  std::fprintf(stderr, "spud: %.*s\nTry 'spud%s%.*s --help'.\n", static_cast<int>(message.size()),
               message.data(), command.empty() ? "" : " ", static_cast<int>(command.size()),
               command.data());
  return kExitUsage;
}

// CLI11 says which argument it did not expect, but not which one was meant.
std::string explain(const CLI::ParseError& error, const CLI::App& sub) {
  std::string message = error.what();
  if (error.get_name() != "ExtrasError") return message;
  std::vector<std::string> names;
  for (const CLI::Option* option : sub.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& extra : sub.remaining(true)) {
    const auto nearest = nearest_word(extra, known);
    if (nearest) return message + "; did you mean '" + std::string(*nearest) + "'?";
  }
  return message;
}

int run(int argc, char** argv) {
  const auto commands = builtin_commands();
  CLI::App app{"spud makes language models cheap to run and proves that they are still good.",
               "spud"};
  app.set_version_flag("--version", std::string("spud ") + kVersion);
  app.require_subcommand(1);

  if (argc > 1 && argv[1][0] != '-') {
    const std::string_view name = argv[1];
    if (auto found = find_in_registry(commands, "command", name); !found) {
      return usage_error(found.error().message(), "");
    }
  }

  struct Defined {
    CLI::App* sub;
    GlobalOptions globals;
    CommandAction action;
  };
  std::vector<std::unique_ptr<Defined>> all;
  for (const Command& command : commands) {
    auto defined = std::make_unique<Defined>();
    defined->sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    add_global_options(*defined->sub, defined->globals);
    defined->action = command.define(*defined->sub, defined->globals);
    all.push_back(std::move(defined));
  }

  Defined* chosen = nullptr;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    for (const auto& defined : all) {
      if (argc > 1 && defined->sub->get_name() == argv[1]) {
        return usage_error(explain(error, *defined->sub), argv[1]);
      }
    }
    return usage_error(error.what(), "");
  }
  for (const auto& defined : all) {
    if (defined->sub->parsed()) chosen = defined.get();
  }
  if (chosen == nullptr) return usage_error("a command is missing", "");
  const auto code = chosen->action();
  if (!code) {
    print_error(code.error(), chosen->globals.json);
    return code.error().code() == ErrorCode::kCancelled ? kExitInterrupted : kExitFailure;
  }
  return *code;
}

}  // namespace
}  // namespace spud::app

int main(int argc, char** argv) {
  // A closed pipe is an error of the write, not a reason to die ('spud eval ... | head').
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return spud::app::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "spud: internal error: %s\nThis is a bug in spud; please report it.\n",
                 e.what());
    return spud::app::kExitFailure;
  }
}
