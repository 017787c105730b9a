// SPDX-License-Identifier: Apache-2.0
#include "gateway/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace spud::gateway {

using telemetry::latency_buckets;

namespace {

// However many keys a file has, the number of series stays within reason.
constexpr std::size_t kMaxTenantLabels = 50;

telemetry::Counter step_part(telemetry::MetricsRegistry& registry, const char* part) {
  return registry.counter("spud_engine_step_part_seconds_total",
                          "Time of engine steps, by what it went into.", {{"part", part}});
}

}  // namespace

ServerMetrics::ServerMetrics(telemetry::MetricsRegistry& registry)
    : registry_(&registry),
      running_(registry.gauge("spud_engine_running_sequences", "Sequences being generated.")),
      waiting_(registry.gauge("spud_engine_waiting_sequences", "Sequences waiting to start.")),
      pages_total_(registry.gauge("spud_engine_kv_pages", "KV cache pages, all.")),
      pages_free_(registry.gauge("spud_engine_kv_pages_free",
                                 "KV cache pages not in use, cached ones included.")),
      pages_cached_(registry.gauge("spud_engine_prefix_cache_pages",
                                   "Pages known to the prefix cache, in use or not.")),
      bytes_cached_(registry.gauge("spud_engine_prefix_cache_bytes",
                                   "Memory of the pages known to the prefix cache.")),
      step_target_seconds_(registry.gauge("spud_engine_step_target_seconds",
                                          "Longest step the scheduler wants; 0 = no target.")),
      step_seconds_(registry.histogram("spud_engine_step_seconds", "Duration of one engine step.",
                                       latency_buckets())),
      planning_seconds_(step_part(registry, "plan")),
      computing_seconds_(step_part(registry, "compute")),
      delivering_seconds_(step_part(registry, "deliver")),
      prompt_rows_(registry.counter("spud_engine_rows_total", "Rows computed, by kind.",
                                    {{"kind", "prompt"}})),
      decode_rows_(registry.counter("spud_engine_rows_total", "Rows computed, by kind.",
                                    {{"kind", "decode"}})),
      preemptions_(registry.counter("spud_engine_preemptions_total",
                                    "Sequences sent back to the queue to be computed again.")),
      deadline_refusals_(registry.counter("spud_engine_deadline_refusals_total",
                                          "Requests refused because they would have been late.")),
      prefix_looked_up_(registry.counter("spud_engine_prefix_cache_lookup_tokens_total",
                                         "Prompt tokens looked up in the prefix cache.")),
      prefix_found_(registry.counter("spud_engine_prefix_cache_hit_tokens_total",
                                     "Prompt tokens found in the prefix cache.")),
      prefix_evicted_(registry.counter("spud_engine_prefix_cache_evicted_pages_total",
                                       "Pages the prefix cache gave up for others.")),
      guessed_(registry.counter("spud_engine_speculated_tokens_total",
                                "Tokens guessed from the text and computed ahead.")),
      guessed_kept_(registry.counter("spud_engine_speculated_tokens_kept_total",
                                     "Of those, what was sampled anyway.")),
      prompt_tokens(registry.counter("spud_gateway_prompt_tokens_total",
                                     "Prompt tokens of finished generations.")),
      generated_tokens(registry.counter("spud_gateway_generated_tokens_total",
                                        "Tokens of finished generations.")),
      cancelled(registry.counter("spud_gateway_cancelled_requests_total",
                                 "Requests whose client left before the answer was complete.")),
      connections(registry.gauge("spud_http_connections", "Open client connections.")),
      time_to_first_token_seconds(
          registry.histogram("spud_gateway_time_to_first_token_seconds",
                             "From the request's arrival to its first token.", latency_buckets())),
      time_per_output_token_seconds(registry.histogram(
          "spud_gateway_time_per_output_token_seconds",
          "Mean time between the tokens of one choice after the first.", latency_buckets())),
      queue_seconds(registry.histogram("spud_gateway_queue_seconds",
                                       "From submission to the first step of a generation.",
                                       latency_buckets())),
      request_seconds(registry.histogram("spud_gateway_request_seconds",
                                         "From a generation request's arrival to its end.",
                                         latency_buckets())) {}

void ServerMetrics::count_request(std::string_view endpoint, int status) {
  auto it = requests_.find({endpoint, status});
  if (it == requests_.end()) {
    const auto counter = registry_->counter(
        "spud_gateway_requests_total", "Requests by endpoint and HTTP status.",
        {{"endpoint", std::string(endpoint)}, {"code", fmt::format("{}", status)}});
    it = requests_.emplace(std::pair(endpoint, status), counter).first;
  }
  it->second.add();
}

void ServerMetrics::observe_step(const engine::StepReport& report) const {
  const auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(std::max(time, std::chrono::nanoseconds(0))).count();
  };
  step_seconds_.observe(seconds(report.duration));
  planning_seconds_.add(seconds(report.planning));
  computing_seconds_.add(seconds(report.computing));
  delivering_seconds_.add(seconds(report.delivering));
  prompt_rows_.add(static_cast<double>(report.prompt_tokens));
  decode_rows_.add(static_cast<double>(report.decode_tokens));
}

void ServerMetrics::name_tenants(std::vector<std::string> names) {
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  names.resize(std::min(names.size(), kMaxTenantLabels));
  tenants_ = std::move(names);
}

void ServerMetrics::update(const engine::EngineStats& stats) {
  running_.set(static_cast<double>(stats.running));
  waiting_.set(static_cast<double>(stats.waiting));
  pages_total_.set(static_cast<double>(stats.kv_pages_total));
  pages_free_.set(static_cast<double>(stats.kv_pages_free));
  pages_cached_.set(static_cast<double>(stats.kv_pages_cached));
  bytes_cached_.set(static_cast<double>(stats.kv_pages_cached * stats.kv_page_bytes));
  step_target_seconds_.set(std::chrono::duration<double>(stats.step_target).count());
  const auto grow = [](const telemetry::Counter& counter, std::int64_t now, std::int64_t before) {
    counter.add(static_cast<double>(std::max<std::int64_t>(now - before, 0)));
  };
  grow(preemptions_, stats.preemptions, last_.preemptions);
  grow(deadline_refusals_, stats.deadline_refusals, last_.deadline_refusals);
  grow(prefix_looked_up_, stats.prefix_tokens_looked_up, last_.prefix_tokens_looked_up);
  grow(prefix_found_, stats.prefix_tokens_found, last_.prefix_tokens_found);
  grow(prefix_evicted_, stats.prefix_pages_evicted, last_.prefix_pages_evicted);
  grow(guessed_, stats.guessed_tokens, last_.guessed_tokens);
  grow(guessed_kept_, stats.guessed_tokens_kept, last_.guessed_tokens_kept);
  last_ = stats;
  if (!tenants_.empty()) update_tenants(stats);
}

void ServerMetrics::update_tenants(const engine::EngineStats& stats) {
  std::map<std::string, engine::TenantStats> by_label;
  for (const std::string& name : tenants_) by_label[name];
  by_label["other"];
  for (const auto& [name, tenant] : stats.tenants) {
    engine::TenantStats& sum =
        by_label[std::ranges::binary_search(tenants_, name) ? name : "other"];
    sum.running += tenant.running;
    sum.waiting += tenant.waiting;
  }
  for (const auto& [label, tenant] : by_label) {
    registry_
        ->gauge("spud_engine_tenant_running_sequences", "Sequences being generated, by tenant.",
                {{"tenant", label}})
        .set(static_cast<double>(tenant.running));
    registry_
        ->gauge("spud_engine_tenant_waiting_sequences", "Sequences waiting, by tenant.",
                {{"tenant", label}})
        .set(static_cast<double>(tenant.waiting));
  }
}

}  // namespace spud::gateway
