// SPDX-License-Identifier: Apache-2.0
// Every metric of the door and of the engine as seen through it. Endpoint labels come from the
// table of routes, codes from the statuses we send: closed sets.
#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "engine/engine.hpp"
#include "telemetry/metrics.hpp"

namespace spud::gateway {

// Thread-safe, except count_request (server thread only).
class ServerMetrics {
 public:
  explicit ServerMetrics(telemetry::MetricsRegistry& registry);

  void count_request(std::string_view endpoint, int status);
  void observe_step(const engine::StepReport& report) const;
  // Gauges are set when somebody asks.
  void update(const engine::EngineStats& stats) const;

  const telemetry::MetricsRegistry& registry() const noexcept { return *registry_; }

 private:
  telemetry::MetricsRegistry* registry_;
  std::map<std::pair<std::string_view, int>, telemetry::Counter> requests_;
  telemetry::Gauge running_;
  telemetry::Gauge waiting_;
  telemetry::Gauge pages_total_;
  telemetry::Gauge pages_free_;
  telemetry::Histogram step_seconds_;

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
