// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/load.hpp"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "concurrency/clock.hpp"
#include "console/progress.hpp"
#include "loadgen/runner.hpp"
#include "spud/commands/load_report.hpp"
#include "spud/commands/load_target.hpp"

namespace spud::app {
namespace {

struct Arguments {
  std::string url;
  std::string model;
  std::string api_key;
  std::string form = "auto";
  std::string arrivals = "poisson";
  std::string prompt = "128";
  std::string output = "64";
  std::string duration = "30s";
  std::string drain = "60s";
  std::string trace;
  std::string slo;
  std::vector<std::string> tenants;
  loadgen::TenantOptions tenant;
  std::int64_t clients = 0;
  std::int64_t warmup = 1;
  std::size_t max_in_flight = 1024;
  std::uint64_t seed = 1;
  double temperature = 0;
  bool stop_at_eos = false;
};

// Each request in flight takes a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::vector<loadgen::TenantOptions>> read_tenants(const Arguments& arguments) {
  loadgen::TenantOptions base = arguments.tenant;
  base.api_key = arguments.api_key;
  SPUD_TRY(base.prompt, loadgen::parse_lengths(arguments.prompt));
  SPUD_TRY(base.output, loadgen::parse_lengths(arguments.output));
  SPUD_TRY(base.arrivals, loadgen::parse_arrivals(arguments.arrivals));
  if (!arguments.trace.empty()) {
    SPUD_TRY(base.trace, loadgen::read_trace(arguments.trace));
    base.arrivals = loadgen::ArrivalKind::kTrace;
  }
  if (arguments.clients > 0) {
    base.clients = arguments.clients;
    base.arrivals = loadgen::ArrivalKind::kClosed;
  }
  std::vector<loadgen::TenantOptions> tenants;
  for (const std::string& text : arguments.tenants) {
    SPUD_TRY(loadgen::TenantOptions tenant, loadgen::parse_tenant(text, base));
    if (tenant.name == base.name) tenant.name = fmt::format("tenant {}", tenants.size() + 1);
    tenants.push_back(std::move(tenant));
  }
  if (tenants.empty()) tenants.push_back(std::move(base));
  return tenants;
}

// Requests that nobody counts, one after another: the server's first ones pay for cold pages.
Result<void> warm_up(const Arguments& arguments, const loadgen::PromptMaker& prompts,
                     const http::Url& url) {
  if (arguments.warmup == 0) return {};
  const std::vector<loadgen::TenantOptions> tenants{{.name = "warm-up",
                                                     .api_key = arguments.api_key,
                                                     .arrivals = loadgen::ArrivalKind::kClosed,
                                                     .requests = arguments.warmup,
                                                     .prompt = {16, 16},
                                                     .output = {4, 4}}};
  // Another seed than the run's: nothing of it may be in the server's cache already.
  SPUD_TRY(const loadgen::Plan plan,
           loadgen::make_plan(tenants, std::chrono::minutes(1), ~arguments.seed));
  const loadgen::RunResult result = run_load(tenants, plan, prompts, url, {});
  for (const loadgen::Outcome& outcome : result.outcomes) {
    if (outcome.ok()) continue;
    const auto message = result.messages.find(loadgen::failure_name(outcome));
    return fail(ErrorCode::kUnavailable, "the warm-up request failed ({}): {}",
                loadgen::failure_name(outcome),
                message == result.messages.end() ? "" : message->second);
  }
  return {};
}

void print_head(const std::vector<loadgen::TenantOptions>& tenants, const loadgen::Plan& plan,
                const loadgen::PromptOptions& prompts, const http::Url& url) {
  constexpr const char* kForms[] = {"token ids", "text", "chat"};
  std::printf("http://%s:%s, model %s, prompts as %s; %zu tenants, %zu requests planned%s\n\n",
              url.host.c_str(), url.port.c_str(), prompts.model.c_str(),
              kForms[static_cast<int>(prompts.form)], tenants.size(), plan.open.size(),
              plan.open.empty() ? " by time" : "");
}

Result<int> run(const Arguments& arguments, const GlobalOptions& globals) {
  SPUD_TRY(const http::Url url, http::parse_url(arguments.url));
  SPUD_TRY(const std::vector<loadgen::TenantOptions> tenants, read_tenants(arguments));
  SPUD_TRY(const loadgen::Slo slo, loadgen::parse_slo(arguments.slo));
  loadgen::RunOptions options{.max_in_flight = arguments.max_in_flight, .handle_interrupt = true};
  SPUD_TRY(options.duration, loadgen::parse_duration(arguments.duration));
  SPUD_TRY(options.drain, loadgen::parse_duration(arguments.drain));
  // An answer may be quiet for as long as it is waited for.
  const auto longest = std::chrono::ceil<std::chrono::milliseconds>(options.duration) +
                       std::chrono::ceil<std::chrono::milliseconds>(options.drain);
  options.client = {.head_timeout = longest, .idle_timeout = longest};
  SPUD_TRY(const loadgen::Plan plan, loadgen::make_plan(tenants, options.duration, arguments.seed));
  SPUD_TRY(loadgen::PromptOptions prompt_options,
           prepare_prompts(url, tenants.front().api_key, arguments.model, arguments.form));
  prompt_options.ignore_eos = !arguments.stop_at_eos;
  prompt_options.temperature = arguments.temperature;
  const loadgen::PromptMaker prompts(prompt_options);
  raise_descriptor_limit();
  SPUD_TRY(warm_up(arguments, prompts, url));
  if (!globals.json) print_head(tenants, plan, prompt_options, url);

  const concurrency::RealClock clock;
  console::Progress progress(console::detect_terminal(), clock, console::write_stderr,
                             {.title = "load",
                              .unit = "answers",
                              .total = std::ssize(plan.open),
                              .quiet = globals.quiet || globals.json});
  options.on_progress = [&progress](const loadgen::RunProgress& now) {
    progress.update(static_cast<std::int64_t>(now.finished),
                    fmt::format("{} sent, {} in flight", now.sent, now.in_flight));
  };
  const loadgen::RunResult result = run_load(tenants, plan, prompts, url, options);
  progress.finish();
  if (globals.json) {
    std::printf("%s\n", boost::json::serialize(load_report_to_json(tenants, result, slo)).c_str());
  } else {
    print_load_report(tenants, result, slo);
  }
  if (result.interrupted) return kExitInterrupted;
  const bool any_ok = loadgen::summarize(result.outcomes, slo).answered > 0;
  return any_ok || result.outcomes.empty() ? kExitOk : kExitFailure;
}

void define_arrivals(CLI::App& sub, Arguments& arguments) {
  sub.add_option("--arrivals", arguments.arrivals,
                 "poisson, gamma, constant, burst (all at once) or closed")
      ->capture_default_str();
  sub.add_option("--rate", arguments.tenant.rate, "Requests a second")->capture_default_str();
  sub.add_option("--cv", arguments.tenant.cv,
                 "gamma: coefficient of variation of the gaps; above 1 comes in bursts")
      ->capture_default_str();
  sub.add_option("--clients", arguments.clients,
                 "Closed loop: clients that send the next request when the last one is answered");
  sub.add_option("--trace", arguments.trace,
                 "Replay a trace: CSV with TIMESTAMP,ContextTokens,GeneratedTokens, or JSON lines "
                 "with timestamp (ms), input_length, output_length");
  sub.add_option("--speed", arguments.tenant.speed, "Trace: times as fast as recorded")
      ->capture_default_str();
  sub.add_option("--requests", arguments.tenant.requests,
                 "Stop after so many requests (of each tenant)");
  sub.add_option("--duration", arguments.duration, "Send nothing new after this")
      ->capture_default_str();
  sub.add_option("--drain", arguments.drain, "How long running requests may take after that")
      ->capture_default_str();
}

}  // namespace

CommandAction define_load(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("URL", arguments->url, "OpenAI-compatible server, as in http://127.0.0.1:8080")
      ->required();
  define_arrivals(sub, *arguments);
  sub.add_option("--prompt", arguments->prompt, "Tokens of a prompt: 128, or 100-200")
      ->capture_default_str();
  sub.add_option("--output", arguments->output, "Tokens of an answer: 64, or 10-100")
      ->capture_default_str();
  sub.add_option("--shared-prefix", arguments->tenant.shared_prefix,
                 "Tokens that all prompts begin with, before --prompt: a system prompt");
  sub.add_option("--tenant", arguments->tenants,
                 "One more source of requests, as in "
                 "name=flood,key=K,arrivals=burst,requests=64,prompt=1000,output=16; what is not "
                 "named is as above. Also rate, cv, clients, start (s), prefix. Repeatable");
  sub.add_option("--slo", arguments->slo, "Limits for goodput: ttft=500ms,tpot=50ms,e2e=10s");
  sub.add_option("--form", arguments->form,
                 "Prompts as tokens (exact lengths, needs /tokenize), text or chat")
      ->check(CLI::IsMember({"auto", "tokens", "text", "chat"}))
      ->capture_default_str();
  sub.add_option("--model", arguments->model, "Default: the first that the server lists");
  sub.add_option("--api-key", arguments->api_key, "Bearer token")->envname("OPENAI_API_KEY");
  sub.add_option("--temperature", arguments->temperature, "Of sampling")->capture_default_str();
  sub.add_flag("--stop-at-eos", arguments->stop_at_eos,
               "Let the model end an answer; else answers have exactly --output tokens, for which "
               "'ignore_eos' is sent");
  sub.add_option("--warmup", arguments->warmup, "Requests before the run, not counted")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1000}))
      ->capture_default_str();
  sub.add_option("--max-in-flight", arguments->max_in_flight,
                 "More open requests than this are dropped and counted")
      ->check(CLI::Range(std::size_t{1}, std::size_t{65536}))
      ->capture_default_str();
  sub.add_option("--seed", arguments->seed, "Of arrivals, lengths and prompts")
      ->capture_default_str();
  return [arguments, &globals] { return run(*arguments, globals); };
}

}  // namespace spud::app
