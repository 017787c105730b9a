// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms in Prometheus' text format, over prometheus-cpp. Handles are
// cheap values; asking twice for one name and labels gives the same metric. Names are
// spud_<module>_<what>_<unit>[_total]; label values come from closed sets only, so that the number
// of series is bounded by the program and not by its clients.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace spud::telemetry {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Thread-safe, valid as long as the registry.
class Counter {
 public:
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  void add(double by = 1) const;
  double value() const;

 private:
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  void set(double value) const;
  void add(double by) const;
  double value() const;

 private:
  prometheus::Gauge* gauge_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
  void observe(double value) const;

 private:
  prometheus::Histogram* histogram_;
};

// Bucket bounds in seconds, about 1-2-5: from a decode step (1 ms) to a long prompt (100 s).
std::vector<double> latency_buckets();

// Thread-safe.
class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  Counter counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `buckets`: ascending upper bounds.
  Histogram histogram(const std::string& name, const std::string& help,
                      const std::vector<double>& buckets, const Labels& labels = {});

  // Text exposition format 0.0.4, what GET /metrics answers.
  std::string exposition() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spud::telemetry
