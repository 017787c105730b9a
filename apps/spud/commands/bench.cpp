// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/bench.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "concurrency/clock.hpp"
#include "concurrency/cpu_budget.hpp"
#include "console/progress.hpp"
#include "console/table.hpp"
#include "console/text.hpp"
#include "engine/speed_probe.hpp"
#include "formats/model_file.hpp"
#include "kvcache/kv_type.hpp"
#include "spud/commands/bench_limits.hpp"
#include "spud/commands/bench_slo.hpp"
#include "spud/isa_option.hpp"
#include "stats/robust.hpp"

namespace spud::app {
namespace {

namespace json = boost::json;

struct Arguments {
  std::string model;
  std::int64_t prompt = 512;
  std::int64_t generate = 64;
  std::int64_t depth = -1;  // -1 = the prompt
  std::vector<std::int64_t> streams = {1};
  std::string kv_type = kernels::to_string(kernels::kDefaultKvType);
  std::int64_t repeats = 5;
  bool machine = false;
  bool no_limits = false;
  SloArguments slo;

  std::int64_t decode_depth() const { return depth < 0 ? prompt : depth; }
};

// Tokens per second of every repeat.
struct Series {
  std::string name;
  std::int64_t streams = 0;  // 0 = prefill
  std::vector<double> rates;
  std::vector<double> product_shares;  // of the time, in loops over weights
  std::optional<SpeedLimit> limit;

  double median() const { return stats::median(rates); }
  double spread() const { return stats::scaled_mad(rates); }
  double product_share() const { return stats::median(product_shares); }
  double of_limit() const { return median() / limit->tokens_per_s; }
  // Where arithmetic is the limit it is the products' alone.
  bool limits_products() const { return limit && limit->bound == machine::Bound::kCompute; }
  double products_of_limit() const { return of_limit() / product_share(); }

  void add(std::int64_t tokens, const engine::SpeedProbe::Run& run) {
    const auto seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
    rates.push_back(static_cast<double>(tokens) / seconds(run.time));
    product_shares.push_back(seconds(run.products) / seconds(run.time));
  }
};

struct Setup {
  std::shared_ptr<const model::Model> model;
  std::chrono::nanoseconds load_time{0};
  int threads = 1;
  std::string threads_reason;
  engine::StepWork work;
  std::optional<machine::Machine> machine;  // absent with --no-limits
};

// Repeats go around all measurements, so that a slow minute of the machine hits all of them.
std::vector<Series> measure(engine::SpeedProbe& probe, const Arguments& arguments,
                            console::Progress& progress) {
  std::vector<Series> all{{.name = fmt::format("prefill {}", arguments.prompt)}};
  for (const std::int64_t streams : arguments.streams) {
    all.push_back({.name = fmt::format("decode {}", streams), .streams = streams});
  }
  probe.prefill(arguments.prompt);  // warm-up: pages are touched, threads awake
  const std::int64_t depth = arguments.decode_depth();
  std::int64_t done = 0;
  for (std::int64_t i = 0; i < arguments.repeats; ++i) {
    for (Series& series : all) {
      if (series.streams == 0) {
        series.add(arguments.prompt, probe.prefill(arguments.prompt));
      } else {
        series.add(series.streams * arguments.generate,
                   probe.decode(series.streams, depth, arguments.generate));
      }
      progress.update(++done, fmt::format("{} {:.0f} tok/s", series.name, series.rates.back()));
    }
  }
  progress.finish();
  return all;
}

void print_table(const Arguments& arguments, const Setup& setup, const std::vector<Series>& all) {
  std::printf("%s: %s packed, loaded in %s, %d threads (%s), %s\n\n",
              std::filesystem::path(arguments.model).filename().c_str(),
              console::format_bytes(setup.model->weight_bytes()).c_str(),
              console::format_duration(setup.load_time).c_str(), setup.threads,
              setup.threads_reason.c_str(), kernels::to_string(setup.model->kernel_table().isa));
  using console::Align;
  console::Table table({{"what"},
                        {"tok/s", Align::kRight},
                        {"spread", Align::kRight},
                        {"tok/s a stream", Align::kRight},
                        {"limit", Align::kRight},
                        {"of limit", Align::kRight},
                        {"limited by"},
                        {"products alone", Align::kRight}});
  for (const Series& series : all) {
    const double per_stream =
        series.median() / static_cast<double>(std::max<std::int64_t>(series.streams, 1));
    std::vector<std::string> row{series.name, fmt::format("{:.1f}", series.median()),
                                 fmt::format("{:.1f}", series.spread()),
                                 fmt::format("{:.1f}", per_stream)};
    if (series.limit) {
      row.push_back(fmt::format("{:.0f}", series.limit->tokens_per_s));
      row.push_back(fmt::format("{:.0f} %", 100 * series.of_limit()));
      row.emplace_back(machine::to_string(series.limit->bound));
      row.push_back(series.limits_products()
                        ? fmt::format("{:.0f} %", 100 * series.products_of_limit())
                        : "");
    }
    table.add_row(std::move(row));
  }
  std::fputs(table.to_text().c_str(), stdout);
  std::printf(
      "\nMedian of %lld; spread = 1.48 x median absolute deviation. Decode starts after %lld "
      "tokens and generates %lld.\n",
      static_cast<long long>(arguments.repeats), static_cast<long long>(arguments.decode_depth()),
      static_cast<long long>(arguments.generate));
  if (!setup.machine) return;
  const machine::Rates& rates = setup.machine->all;
  std::printf(
      "Limit: a step reads %s of weights and its keys and values at %.1f GB/s, and multiplies at "
      "%.0f int8 Gop/s (%s); the slower of both. Measured in this run, see 'spud bench "
      "--machine'. Products alone: the time in loops over weights beside the limit.\n",
      console::format_bytes(static_cast<std::uint64_t>(setup.work.weight_bytes)).c_str(),
      rates.memory_bytes_per_s / 1e9, rates.int8_ops_per_s / 1e9,
      setup.machine->instructions.c_str());
}

json::object to_json(const Series& series) {
  json::object object{{"what", series.name},
                      {"tokens_per_s", series.median()},
                      {"spread_tokens_per_s", series.spread()},
                      {"all_tokens_per_s", json::value_from(series.rates)},
                      {"products_fraction_of_time", series.product_share()}};
  if (series.streams > 0) object["streams"] = series.streams;
  if (series.limit) {
    object["limit_tokens_per_s"] = series.limit->tokens_per_s;
    object["fraction_of_limit"] = series.of_limit();
    if (series.limits_products()) object["products_fraction_of_limit"] = series.products_of_limit();
    object["limited_by"] = machine::to_string(series.limit->bound);
  }
  return object;
}

void print_json(const Arguments& arguments, const Setup& setup, const std::vector<Series>& all) {
  json::array results;
  for (const Series& series : all) results.push_back(to_json(series));
  json::object report{{"model", arguments.model},
                      {"isa", kernels::to_string(setup.model->kernel_table().isa)},
                      {"threads", setup.threads},
                      {"threads_reason", setup.threads_reason},
                      {"kv_type", arguments.kv_type},
                      {"weight_bytes", setup.model->weight_bytes()},
                      {"load_s", std::chrono::duration<double>(setup.load_time).count()},
                      {"prompt", arguments.prompt},
                      {"depth", arguments.decode_depth()},
                      {"generate", arguments.generate},
                      {"repeats", arguments.repeats},
                      // The first number of streams, for scripts that ask for one only.
                      {"prefill_tokens_per_s", all[0].median()},
                      {"decode_tokens_per_s", all[1].median()},
                      {"step_weight_bytes", setup.work.weight_bytes},
                      {"results", std::move(results)}};
  if (setup.machine) report["machine"] = machine_to_json(*setup.machine);
  std::printf("%s\n", json::serialize(report).c_str());
}

// The limit of each series; the machine is measured with all instructions it has, whatever --isa
// makes of the kernels.
void add_limits(const Arguments& arguments, const concurrency::Clock& clock, Setup& setup,
                std::vector<Series>& all) {
  if (arguments.no_limits) return;
  // Before and after: a neighbour on the same memory may have been busy at one of the times.
  const machine::Machine after = machine::measure_machine({.threads = setup.threads}, clock);
  setup.machine->one = machine::best_of(setup.machine->one, after.one);
  setup.machine->all = machine::best_of(setup.machine->all, after.all);
  for (Series& series : all) {
    const Measured measured{.streams = series.streams,
                            .tokens = series.streams == 0 ? arguments.prompt : arguments.generate,
                            .depth = arguments.decode_depth()};
    series.limit = speed_limit(measured, setup.work, setup.machine->all);
  }
}

int run_machine(int threads, const concurrency::Clock& clock, const GlobalOptions& globals) {
  const machine::Machine machine = machine::measure_machine({.threads = threads}, clock);
  if (globals.json) {
    std::printf("%s\n", json::serialize(machine_to_json(machine)).c_str());
  } else {
    print_machine(machine);
  }
  return kExitOk;
}

Result<int> run(const Arguments& arguments, const GlobalOptions& globals) {
  SPUD_TRY(const kernels::Isa isa, isa_of(globals));
  SPUD_TRY(const kernels::KvType kv_type, kvcache::parse_kv_type(arguments.kv_type));
  const concurrency::RealClock clock;
  const concurrency::ThreadChoice choice =
      concurrency::choose_threads(globals.threads, concurrency::read_cpu_budget());
  Setup setup{.threads = choice.threads, .threads_reason = choice.reason};
  if (arguments.machine) return run_machine(setup.threads, clock, globals);
  if (arguments.model.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "no model was given: name a file or folder, or ask for --machine");
  }
  if (!arguments.slo.slo.empty()) {
    SloArguments slo = arguments.slo;
    slo.model = arguments.model;
    slo.prompt = arguments.prompt;
    slo.generate = arguments.generate;
    slo.kv_type = arguments.kv_type;
    return run_bench_slo(slo, globals);
  }
  concurrency::ThreadPool pool(setup.threads);
  const auto begin = clock.now();
  SPUD_TRY(auto file, formats::ModelFile::open(arguments.model));
  SPUD_TRY(setup.model, model::Model::load(file, pool, {.isa_limit = isa}));
  setup.load_time = clock.now() - begin;
  setup.work = engine::describe_step_work(*file, setup.model->hyper_parameters(),
                                          setup.model->kv_geometry(kv_type));

  const std::int64_t longest =
      std::max(arguments.prompt, arguments.decode_depth() + arguments.generate);
  SPUD_TRY(auto probe, engine::SpeedProbe::create(setup.model, pool, clock,
                                                  *std::ranges::max_element(arguments.streams),
                                                  longest, kv_type));
  const auto total = arguments.repeats * (1 + static_cast<std::int64_t>(arguments.streams.size()));
  console::Progress progress(console::detect_terminal(), clock, console::write_stderr,
                             {.title = "measuring",
                              .unit = "runs",
                              .total = total,
                              .quiet = globals.quiet || globals.json});
  if (!arguments.no_limits) {
    setup.machine = machine::measure_machine({.threads = setup.threads}, clock);
  }
  std::vector<Series> all = measure(*probe, arguments, progress);
  add_limits(arguments, clock, setup, all);
  if (globals.json) {
    print_json(arguments, setup, all);
  } else {
    print_table(arguments, setup, all);
  }
  return kExitOk;
}

}  // namespace

CommandAction define_bench(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  constexpr std::int64_t kMaxTokens = 1 << 20;
  sub.add_option("model", arguments->model, "Model file or folder");
  sub.add_flag("--machine", arguments->machine,
               "What this machine can do (bandwidth, peaks, barriers), without a model");
  sub.add_flag("--no-limits", arguments->no_limits,
               "Only the speeds, not how near they come to the machine's limits");
  sub.add_option("--prompt", arguments->prompt, "Tokens of the prompt")
      ->check(CLI::Range(std::int64_t{1}, kMaxTokens))
      ->capture_default_str();
  sub.add_option("--generate", arguments->generate, "Tokens each stream generates")
      ->check(CLI::Range(std::int64_t{1}, kMaxTokens))
      ->capture_default_str();
  sub.add_option("--depth", arguments->depth,
                 "Tokens each stream has behind it before it generates; default: the prompt")
      ->check(CLI::Range(std::int64_t{0}, kMaxTokens));
  sub.add_option("--streams", arguments->streams, "Streams that decode together, e.g. 1,8,16")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1024}));
  sub.add_option("--kv-type", arguments->kv_type, "Type of stored keys and values: int8 or f16")
      ->capture_default_str();
  sub.add_option("--repeats", arguments->repeats, "Repeats of every measurement")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  sub.add_option("--slo", arguments->slo.slo,
                 "Find the highest rate of requests that meets these limits at p99, as in "
                 "ttft=500ms,tpot=50ms (also e2e), and the settings for it");
  sub.add_option("--trial", arguments->slo.trial, "--slo: how long one rate is tried")
      ->capture_default_str();
  sub.add_option("--out", arguments->slo.out,
                 "--slo: file for the settings, for 'spud serve -f'; default: print them");
  return [arguments, &globals] { return run(*arguments, globals); };
}

}  // namespace spud::app
