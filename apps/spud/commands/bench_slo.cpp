// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/bench_slo.hpp"

#include <boost/json.hpp>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "base/check.hpp"
#include "config/config.hpp"
#include "config/overrides.hpp"
#include "console/progress.hpp"
#include "console/table.hpp"
#include "io/atomic_file.hpp"
#include "loadgen/find_rate.hpp"
#include "loadgen/runner.hpp"
#include "loadgen/summary.hpp"
#include "spud/commands/load_report.hpp"
#include "spud/commands/load_target.hpp"
#include "spud/commands/model_server.hpp"
#include "telemetry/log.hpp"

namespace spud::app {
namespace {

namespace json = boost::json;

constexpr double kTolerance = 0.08;
constexpr double kFirstRate = 1;
constexpr double kRequestsWanted = 50;
constexpr std::chrono::seconds kDrain{20};

using Settings = std::map<std::string, std::string>;  // by field of ServeOptions

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  }
  return text.empty() ? "defaults" : text;
}

Result<void> apply(const Settings& settings, ServeOptions& options) {
  return config::apply_overrides(
      [&options](config::FieldVisitor& visitor) { options.visit_fields(visitor); },
      [&settings](std::string_view path) -> std::optional<std::string> {
        const auto found = settings.find(std::string(path));
        if (found == settings.end()) return std::nullopt;
        return found->second;
      });
}

// A server in this process, on its own thread and any free port.
class LocalServer {
 public:
  static Result<std::unique_ptr<LocalServer>> start(const ServeOptions& options,
                                                    const GlobalOptions& globals) {
    SPUD_TRY(auto server, ModelServer::open(options, globals));
    return std::unique_ptr<LocalServer>(new LocalServer(std::move(server)));
  }
  ~LocalServer() { server_->stop(); }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  http::Url url() const {
    return {.host = "127.0.0.1", .port = std::to_string(server_->port()), .path = ""};
  }

 private:
  explicit LocalServer(std::unique_ptr<ModelServer> server)
      : server_(std::move(server)), thread_([this] { server_->run(/*handle_signals=*/false); }) {}

  std::unique_ptr<ModelServer> server_;
  std::jthread thread_;  // last: it runs the server, and ends before it
};

struct Trial {
  Settings settings;
  double rate = 0;
  bool met = false;
  loadgen::Summary summary;
};

class Search {
 public:
  Search(const SloArguments& arguments, const GlobalOptions& globals, loadgen::Slo slo,
         loadgen::Nanoseconds trial_time)
      : arguments_(arguments),
        globals_(globals),
        slo_(slo),
        trial_time_(trial_time),
        progress_(console::detect_terminal(), clock_, console::write_stderr,
                  {.title = "load", .unit = "trials", .quiet = globals.quiet || globals.json}) {
    base_.model = arguments.model;
    base_.port = 0;
    base_.drain_s = 1;
    base_.log_level = "error";
    base_.threads = globals.threads;
    base_.max_queue = 1024;  // the limits shall say what is too much, not the queue
    if (!arguments.kv_type.empty()) base_.kv_type = arguments.kv_type;
  }

  Result<void> run();
  ServeOptions best_options() const;
  const Settings& best_settings() const { return best_; }
  double best_rate() const { return best_rate_; }
  const std::vector<Trial>& trials() const { return trials_; }

 private:
  std::vector<Settings> variations() const;
  Result<bool> try_rate(const LocalServer& server, const loadgen::PromptMaker& prompts,
                        const Settings& settings, double rate);
  // Raises best_rate_ and best_ if `settings` carry more than they do now.
  Result<void> improve(const Settings& settings);

  const SloArguments& arguments_;
  const GlobalOptions& globals_;
  loadgen::Slo slo_;
  loadgen::Nanoseconds trial_time_;
  concurrency::RealClock clock_;
  console::Progress progress_;
  ServeOptions base_;
  Settings best_;
  double best_rate_ = 0;
  std::vector<Trial> trials_;
};

// What decides between latency and rate, one at a time; names that this server does not have are
// left out.
std::vector<Settings> Search::variations() const {
  ServeOptions defaults = base_;
  std::set<std::string> known;
  for (const auto& field : config::describe_fields(
           [&defaults](config::FieldVisitor& visitor) { defaults.visit_fields(visitor); })) {
    known.insert(field.path);
  }
  std::vector<Settings> all = {{{"max_sequences", "16"}},
                               {{"max_sequences", "64"}},
                               {{"step_rows", "128"}},
                               {{"step_rows", "512"}}};
  if (slo_.tpot) {
    const double tpot_ms = std::chrono::duration<double, std::milli>(*slo_.tpot).count();
    all.push_back({{"step_target_ms", fmt::format("{:.1f}", 0.5 * tpot_ms)}});
    all.push_back({{"step_target_ms", fmt::format("{:.1f}", 0.9 * tpot_ms)}});
  }
  std::erase_if(
      all, [&known](const Settings& settings) { return !known.contains(settings.begin()->first); });
  return all;
}

Result<bool> Search::try_rate(const LocalServer& server, const loadgen::PromptMaker& prompts,
                              const Settings& settings, double rate) {
  const std::vector<loadgen::TenantOptions> tenants{
      {.rate = rate,
       .prompt = {arguments_.prompt, arguments_.prompt},
       .output = {arguments_.generate, arguments_.generate}}};
  // Long enough for some dozens of requests, within reason: two say nothing about a p99.
  const auto wanted = std::chrono::duration<double>(kRequestsWanted / rate);
  const auto duration = std::clamp(std::chrono::duration_cast<loadgen::Nanoseconds>(wanted),
                                   trial_time_, 4 * trial_time_);
  // Another seed each time: no trial finds its prompts in the cache.
  SPUD_TRY(const loadgen::Plan plan, loadgen::make_plan(tenants, trial_time_, trials_.size() + 1));
  loadgen::RunOptions options{.duration = trial_time_, .drain = kDrain, .handle_interrupt = true};
  options.client = {.head_timeout = std::chrono::minutes(10),
                    .idle_timeout = std::chrono::minutes(10)};
  const loadgen::RunResult result =
      loadgen::run_load(tenants, plan, prompts, server.url(), options);
  if (result.interrupted) return fail(ErrorCode::kCancelled, "interrupted");
  Trial trial{.settings = settings, .rate = rate};
  trial.summary = loadgen::summarize(result.outcomes, slo_);
  trial.met = loadgen::meets_slo(result.outcomes, slo_);
  trials_.push_back(trial);
  progress_.update(std::ssize(trials_),
                   fmt::format("{}: {:.2f} requests/s {}", to_text(settings), rate,
                               trial.met ? "within the limits" : "too much"));
  return trial.met;
}

Result<void> Search::improve(const Settings& settings) {
  ServeOptions options = base_;
  SPUD_TRY(apply(settings, options));
  SPUD_TRY(const auto server, LocalServer::start(options, globals_));
  SPUD_TRY(loadgen::PromptOptions prompt_options, prepare_prompts(server->url(), "", "", "tokens"));
  const loadgen::PromptMaker prompts(std::move(prompt_options));
  // A miss is tried once more: a disturbance from outside looks the same as too high a rate.
  const auto meets = [&](double rate) -> Result<bool> {
    SPUD_TRY(const bool met, try_rate(*server, prompts, settings, rate));
    if (met) return true;
    return try_rate(*server, prompts, settings, rate);
  };
  const loadgen::FindRateOptions find{
      .first = kFirstRate, .known_good = best_rate_, .tolerance = kTolerance};
  SPUD_TRY(const loadgen::FoundRate found, loadgen::find_rate(find, meets));
  if (found.rate > best_rate_) {
    best_rate_ = found.rate;
    best_ = settings;
  }
  return {};
}

Result<void> Search::run() {
  SPUD_TRY(improve({}));
  if (best_rate_ > 0) {
    for (Settings settings : variations()) {
      // On top of what has won so far.
      settings.insert(best_.begin(), best_.end());
      SPUD_TRY(improve(settings));
    }
  }
  progress_.finish();
  return {};
}

ServeOptions Search::best_options() const {
  ServeOptions options;
  options.model = arguments_.model;
  options.threads = base_.threads;
  options.kv_type = base_.kv_type;
  const Result<void> applied = apply(best_, options);
  SPUD_CHECK(applied.has_value());  // they ran
  return options;
}

std::string make_yaml(const SloArguments& arguments, const loadgen::Slo& slo,
                      const Search& search) {
  return fmt::format(
      "# spud serve -f THIS: {:.2f} requests/s of {} tokens in and {} out met {} for 99 of 100\n"
      "# requests (open loop, Poisson) on the machine that measured it; {}.\n{}",
      search.best_rate(), arguments.prompt, arguments.generate, loadgen::to_string(slo),
      to_text(search.best_settings()), config::to_yaml(search.best_options()));
}

void print_trials(const Search& search) {
  using console::Align;
  console::Table table({{"settings"},
                        {"requests/s", Align::kRight},
                        {"sent", Align::kRight},
                        {"ttft p99 ms", Align::kRight},
                        {"tpot p99 ms", Align::kRight},
                        {"output tok/s", Align::kRight},
                        {""}});
  for (const Trial& trial : search.trials()) {
    table.add_row({to_text(trial.settings), fmt::format("{:.2f}", trial.rate),
                   std::to_string(trial.summary.requests),
                   fmt::format("{:.0f}", trial.summary.ttft.p99 * 1000),
                   fmt::format("{:.1f}", trial.summary.tpot.p99 * 1000),
                   fmt::format("{:.1f}", trial.summary.output_tokens_per_s()),
                   trial.met ? "met" : "missed"});
  }
  std::fputs(table.to_text().c_str(), stdout);
}

json::object to_json(const SloArguments& arguments, const loadgen::Slo& slo, const Search& search) {
  json::array trials;
  for (const Trial& trial : search.trials()) {
    json::object object{{"rate", trial.rate}, {"met", trial.met}};
    object["settings"] = json::value_from(trial.settings);
    object["result"] = summary_to_json(trial.summary);
    trials.push_back(std::move(object));
  }
  return {{"model", arguments.model},
          {"slo", loadgen::to_string(slo)},
          {"prompt", arguments.prompt},
          {"generate", arguments.generate},
          {"requests_per_s", search.best_rate()},
          {"settings", json::value_from(search.best_settings())},
          {"trials", std::move(trials)}};
}

}  // namespace

Result<int> run_bench_slo(const SloArguments& arguments, const GlobalOptions& globals) {
  SPUD_TRY(const loadgen::Slo slo, loadgen::parse_slo(arguments.slo));
  if (slo.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "no limit was given, as in --slo ttft=500ms,tpot=50ms");
  }
  SPUD_TRY(const loadgen::Nanoseconds trial_time, loadgen::parse_duration(arguments.trial));
  telemetry::init_logging({.level = telemetry::Level::error});
  Search search(arguments, globals, slo, trial_time);
  SPUD_TRY(search.run());
  const std::string yaml = make_yaml(arguments, slo, search);
  const bool found = search.best_rate() > 0;
  if (found && !arguments.out.empty()) {
    SPUD_TRY(io::write_file_atomically(arguments.out, yaml));
  }
  if (globals.json) {
    std::printf("%s\n", json::serialize(to_json(arguments, slo, search)).c_str());
    return found ? kExitOk : kExitFailure;
  }
  print_trials(search);
  if (!found) {
    std::printf("\nNo rate meets %s: one request alone is too slow.\n", arguments.slo.c_str());
    return kExitFailure;
  }
  std::printf("\n%.2f requests/s meet %s at p99, with %s.\n%s\n", search.best_rate(),
              loadgen::to_string(slo).c_str(), to_text(search.best_settings()).c_str(),
              latency_definitions().c_str());
  if (arguments.out.empty()) {
    std::fputs(yaml.c_str(), stdout);
  } else {
    std::printf("Written to %s.\n", arguments.out.c_str());
  }
  return kExitOk;
}

}  // namespace spud::app
