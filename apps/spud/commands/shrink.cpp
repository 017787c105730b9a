// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/shrink.hpp"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/version.hpp"
#include "compress/chain.hpp"
#include "compress/engine_measurer.hpp"
#include "compress/report/report.hpp"
#include "concurrency/cpu_budget.hpp"
#include "spud/commands/shrink_progress.hpp"
#include "spud/isa_option.hpp"

namespace spud::app {
namespace {

struct Arguments {
  std::string model;
  std::string recipe = "chat";
  std::string out;
  std::string data;
  bool status = false;
};

// Ctrl-C without a handler: the signal is held back and asked for, so that the chain stops at the
// next safe place. A second one ends the program at once; that is safe, too.
class InterruptWatch {
 public:
  InterruptWatch() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  bool interrupted() {
    constexpr timespec kNoWait{};
    if (!seen_ && sigtimedwait(&signals_, nullptr, &kNoWait) == SIGINT) {
      seen_ = true;
      pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    }
    return seen_;
  }

 private:
  sigset_t signals_{};
  bool seen_ = false;
};

void print_result(const compress::Journal& journal, const std::filesystem::path& folder,
                  bool json) {
  if (json) {
    std::fputs(compress::render_json(journal).c_str(), stdout);
    return;
  }
  std::string text = compress::verdict_table(journal).to_text();
  text += fmt::format("\n{}\n", compress::headline(journal));
  if (!journal.finished) {
    text += "The chain is not finished; the same command goes on from here.\n";
  } else if (!journal.accepted.file.empty()) {
    text += fmt::format("Artifact: {}\nReport:   {}\n", (folder / "model.gguf").string(),
                        (folder / "report.html").string());
  }
  text += fmt::format("\n{}\n", compress::method_text(journal));
  std::fputs(text.c_str(), stdout);
}

int exit_code(const compress::Journal& journal) {
  return journal.artifact_digest.empty() || compress::holdout_failed(journal) ? kExitFailure
                                                                              : kExitOk;
}

Result<int> show_status(const Arguments& arguments, const GlobalOptions& globals) {
  SPUD_TRY(const compress::Journal journal, compress::read_journal(arguments.out));
  print_result(journal, arguments.out, globals.json);
  return kExitOk;
}

Result<int> run_shrink(const Arguments& arguments, const GlobalOptions& globals) {
  if (arguments.status) return show_status(arguments, globals);
  if (arguments.model.empty()) {
    return fail(ErrorCode::kInvalidArgument, "which model? spud shrink MODEL --out DIR");
  }
  SPUD_TRY(compress::Recipe recipe,
           compress::load_recipe(arguments.recipe, compress::builtin_passes()));
  if (!arguments.data.empty()) recipe.measure.data = arguments.data;
  SPUD_TRY(const kernels::Isa isa, isa_of(globals));
  InterruptWatch watch;  // before the pool: its threads inherit the mask
  const concurrency::RealClock clock;
  concurrency::ThreadPool pool(
      concurrency::choose_threads(globals.threads, concurrency::read_cpu_budget()).threads);
  ShrinkProgress progress(console::detect_terminal(), clock, globals.quiet);
  SPUD_TRY(const compress::Journal journal,
           compress::run_chain(
               {.source = arguments.model,
                .folder = arguments.out,
                .recipe = std::move(recipe),
                .spud_version = kVersion,
                .make_measurer = compress::make_engine_measurer({.load = {.isa_limit = isa}}),
                .on_event = [&](const compress::ChainEvent& event) { progress.on_event(event); },
                .cancelled = [&] { return watch.interrupted(); }},
               pool, clock));
  print_result(journal, arguments.out, globals.json);
  return exit_code(journal);
}

}  // namespace

CommandAction define_shrink(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("MODEL", arguments->model, "GGUF file, safetensors file or Hugging Face folder");
  std::string known;
  for (const auto& recipe : compress::builtin_recipes()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", recipe.name);
  }
  sub.add_option("--recipe", arguments->recipe,
                 fmt::format("Built-in recipe ({}) or a YAML file", known))
      ->capture_default_str();
  sub.add_option("--out", arguments->out,
                 "Folder for artifact, certificate, report and journal; a stopped chain in it is "
                 "resumed")
      ->required();
  sub.add_option("--data", arguments->data,
                 "Text to measure on, instead of the recipe's: builtin, self (sampled from the "
                 "original) or a file");
  sub.add_flag("--status", arguments->status, "Show how far the chain in --out is, and end");
  return [arguments, &globals]() -> Result<int> { return run_shrink(*arguments, globals); };
}

}  // namespace spud::app
