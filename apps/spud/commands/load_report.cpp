// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/load_report.hpp"

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>

#include "console/table.hpp"
#include "console/text.hpp"

namespace spud::app {
namespace {

namespace json = boost::json;
using loadgen::Percentiles;
using loadgen::Summary;

std::string milliseconds(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.1f}", seconds * 1000) : "-";
}

void add_row(console::Table& table, const std::string& tenant, const char* what,
             const Percentiles& p) {
  table.add_row({tenant, what, milliseconds(p.mean), milliseconds(p.p50), milliseconds(p.p90),
                 milliseconds(p.p99), milliseconds(p.max)});
}

void add_rows(console::Table& table, const std::string& tenant, const Summary& summary) {
  add_row(table, tenant, "time to first token", summary.ttft);
  add_row(table, tenant, "time per output token", summary.tpot);
  add_row(table, tenant, "longest gap in an answer", summary.longest_gap);
  add_row(table, tenant, "whole answer", summary.e2e);
  add_row(table, tenant, "sent late", summary.lateness);
}

void print_rates(const std::string& tenant, const Summary& summary, const loadgen::Slo& slo) {
  std::printf("%s%zu of %zu requests answered in %.1f s: %.2f requests/s, %.1f output tokens/s",
              tenant.empty() ? "" : (tenant + ": ").c_str(), summary.answered, summary.requests,
              summary.seconds, summary.requests_per_s(), summary.output_tokens_per_s());
  if (summary.answered > 0) {
    const auto answered = static_cast<double>(summary.answered);
    std::printf("; %.1f tokens in, %.1f out on average",
                static_cast<double>(summary.prompt_tokens) / answered,
                static_cast<double>(summary.output_tokens) / answered);
  }
  if (summary.cached_tokens > 0) {
    std::printf("; %.0f %% of the prompts from the cache",
                100 * static_cast<double>(summary.cached_tokens) /
                    static_cast<double>(std::max<std::int64_t>(1, summary.prompt_tokens)));
  }
  std::printf("\n");
  if (slo.empty()) return;
  std::printf("  goodput under %s: %.2f requests/s (%zu of %zu requests)\n",
              loadgen::to_string(slo).c_str(), summary.goodput_per_s(), summary.within_slo,
              summary.requests);
}

// JSON has no NaN: what was not measured is null.
json::value number(double value) {
  return std::isfinite(value) ? json::value(value) : json::value(nullptr);
}

json::object percentiles_to_json(const Percentiles& p) {
  return {{"mean_s", number(p.mean)},
          {"p50_s", number(p.p50)},
          {"p90_s", number(p.p90)},
          {"p99_s", number(p.p99)},
          {"max_s", number(p.max)}};
}

}  // namespace

std::string latency_definitions() {
  return "Milliseconds, over answered requests. Time to first token and whole answer count from "
         "the "
         "scheduled time\n(closed loop: from sending) to the first event with text and to the end "
         "of the stream; time per output token is\n(last text - first text) / (output tokens - "
         "1).\n";
}

void print_load_report(const std::vector<loadgen::TenantOptions>& tenants,
                       const loadgen::RunResult& result, const loadgen::Slo& slo) {
  using console::Align;
  const bool several = tenants.size() > 1;
  console::Table table({{several ? "tenant" : ""},
                        {"latency"},
                        {"mean", Align::kRight},
                        {"p50", Align::kRight},
                        {"p90", Align::kRight},
                        {"p99", Align::kRight},
                        {"max", Align::kRight}});
  for (std::size_t i = 0; several && i < tenants.size(); ++i) {
    add_rows(table, tenants[i].name, loadgen::summarize(result.outcomes, slo, static_cast<int>(i)));
  }
  const Summary all = loadgen::summarize(result.outcomes, slo);
  add_rows(table, several ? "all" : "", all);
  std::fputs(table.to_text().c_str(), stdout);
  std::printf("\n%s\n", latency_definitions().c_str());
  for (std::size_t i = 0; several && i < tenants.size(); ++i) {
    print_rates(tenants[i].name, loadgen::summarize(result.outcomes, slo, static_cast<int>(i)),
                slo);
  }
  print_rates(several ? "all" : "", all, slo);
  for (const auto& [name, count] : all.failures) {
    const auto message = result.messages.find(name);
    std::printf("  %zu %s%s\n", count, name.c_str(),
                message == result.messages.end()
                    ? ""
                    : fmt::format(": {}", console::printable(message->second)).c_str());
  }
  if (result.interrupted) std::printf("  interrupted: what was running is counted as unfinished\n");
}

json::object summary_to_json(const Summary& summary) {
  json::object failures;
  for (const auto& [name, count] : summary.failures) failures[name] = count;
  return {{"requests", summary.requests},
          {"answered", summary.answered},
          {"failures", std::move(failures)},
          {"seconds", summary.seconds},
          {"prompt_tokens", summary.prompt_tokens},
          {"cached_tokens", summary.cached_tokens},
          {"output_tokens", summary.output_tokens},
          {"output_tokens_per_s", summary.output_tokens_per_s()},
          {"requests_per_s", summary.requests_per_s()},
          {"within_slo", summary.within_slo},
          {"goodput_per_s", summary.goodput_per_s()},
          {"ttft", percentiles_to_json(summary.ttft)},
          {"tpot", percentiles_to_json(summary.tpot)},
          {"e2e", percentiles_to_json(summary.e2e)},
          {"longest_gap", percentiles_to_json(summary.longest_gap)},
          {"lateness", percentiles_to_json(summary.lateness)}};
}

json::object load_report_to_json(const std::vector<loadgen::TenantOptions>& tenants,
                                 const loadgen::RunResult& result, const loadgen::Slo& slo) {
  json::object report = summary_to_json(loadgen::summarize(result.outcomes, slo));
  report["slo"] = loadgen::to_string(slo);
  report["interrupted"] = result.interrupted;
  json::object messages;
  for (const auto& [name, message] : result.messages) messages[name] = console::printable(message);
  report["messages"] = std::move(messages);
  json::object by_tenant;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    by_tenant[tenants[i].name] =
        summary_to_json(loadgen::summarize(result.outcomes, slo, static_cast<int>(i)));
  }
  report["tenants"] = std::move(by_tenant);
  return report;
}

}  // namespace spud::app
