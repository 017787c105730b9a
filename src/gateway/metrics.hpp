// SPDX-License-Identifier: Apache-2.0
// Every metric of the door and of the engine as seen through it. Endpoint labels come from the
// table of routes, codes from the statuses we send: closed sets.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "telemetry/metrics.hpp"

namespace spud::gateway {

// Thread-safe, except count_request (server thread only).
class ServerMetrics {
 public:
  explicit ServerMetrics(telemetry::MetricsRegistry& registry);

  void count_request(std::string_view endpoint, int status);
  void observe_step(const engine::StepReport& report) const;
  // Tenants with a label of their own; what others do counts as "other".
  void name_tenants(std::vector<std::string> names);
  // Set when somebody asks; server thread only.
  void update(const engine::EngineStats& stats);

  const telemetry::MetricsRegistry& registry() const noexcept { return *registry_; }

 private:
  void update_tenants(const engine::EngineStats& stats);

  telemetry::MetricsRegistry* registry_;
  std::map<std::pair<std::string_view, int>, telemetry::Counter> requests_;
  telemetry::Gauge running_;
  telemetry::Gauge waiting_;
  telemetry::Gauge pages_total_;
  telemetry::Gauge pages_free_;
  telemetry::Gauge pages_cached_;
  telemetry::Gauge bytes_cached_;
  telemetry::Gauge step_target_seconds_;
  telemetry::Histogram step_seconds_;
  telemetry::Counter planning_seconds_;
  telemetry::Counter computing_seconds_;
  telemetry::Counter delivering_seconds_;
  telemetry::Counter prompt_rows_;
  telemetry::Counter decode_rows_;
  telemetry::Counter preemptions_;
  telemetry::Counter deadline_refusals_;
  telemetry::Counter prefix_looked_up_;
  telemetry::Counter prefix_found_;
  telemetry::Counter prefix_evicted_;
  telemetry::Counter guessed_;
  telemetry::Counter guessed_kept_;
  engine::EngineStats last_;  // at the latest update: counters grow by the difference
  std::vector<std::string> tenants_;

 public:
  telemetry::Counter prompt_tokens;
  telemetry::Counter generated_tokens;
  telemetry::Counter cancelled;  // clients that left before their answer was complete
  telemetry::Gauge connections;
  telemetry::Histogram time_to_first_token_seconds;
  telemetry::Histogram time_per_output_token_seconds;
  telemetry::Histogram queue_seconds;
  telemetry::Histogram request_seconds;
};

}  // namespace spud::gateway
