// SPDX-License-Identifier: Apache-2.0
#include "gateway/metrics.hpp"

#include <fmt/format.h>

namespace spud::gateway {

using telemetry::latency_buckets;

ServerMetrics::ServerMetrics(telemetry::MetricsRegistry& registry)
    : registry_(&registry),
      running_(registry.gauge("spud_engine_running_sequences", "Sequences being generated.")),
      waiting_(registry.gauge("spud_engine_waiting_sequences", "Sequences waiting to start.")),
      pages_total_(registry.gauge("spud_engine_kv_pages", "KV cache pages, all.")),
      pages_free_(registry.gauge("spud_engine_kv_pages_free", "KV cache pages not in use.")),
      step_seconds_(registry.histogram("spud_engine_step_seconds", "Duration of one engine step.",
                                       latency_buckets())),
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
  step_seconds_.observe(std::chrono::duration<double>(report.duration).count());
}

void ServerMetrics::update(const engine::EngineStats& stats) const {
  running_.set(static_cast<double>(stats.running));
  waiting_.set(static_cast<double>(stats.waiting));
  pages_total_.set(static_cast<double>(stats.kv_pages_total));
  pages_free_.set(static_cast<double>(stats.kv_pages_free));
}

}  // namespace spud::gateway
