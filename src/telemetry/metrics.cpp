// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/check.hpp"

namespace spud::telemetry {
namespace {

prometheus::Labels to_prometheus(const Labels& labels) {
  return prometheus::Labels(labels.begin(), labels.end());
}

}  // namespace

struct MetricsRegistry::State {
  prometheus::Registry registry;
};

void Counter::add(double by) const { counter_->Increment(by); }
double Counter::value() const { return counter_->Value(); }
void Gauge::set(double value) const { gauge_->Set(value); }
void Gauge::add(double by) const { gauge_->Increment(by); }
double Gauge::value() const { return gauge_->Value(); }
void Histogram::observe(double value) const { histogram_->Observe(value); }

std::vector<double> latency_buckets() {
  return {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100};
}

MetricsRegistry::MetricsRegistry() : state_(std::make_unique<State>()) {}
MetricsRegistry::~MetricsRegistry() = default;

Counter MetricsRegistry::counter(const std::string& name, const std::string& help,
                                 const Labels& labels) {
  SPUD_DCHECK(name.starts_with("spud_"));
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
  return Counter(&family.Add(to_prometheus(labels)));
}

Gauge MetricsRegistry::gauge(const std::string& name, const std::string& help,
                             const Labels& labels) {
  SPUD_DCHECK(name.starts_with("spud_"));
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry);
  return Gauge(&family.Add(to_prometheus(labels)));
}

Histogram MetricsRegistry::histogram(const std::string& name, const std::string& help,
                                     const std::vector<double>& buckets, const Labels& labels) {
  SPUD_DCHECK(name.starts_with("spud_"));
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
  return Histogram(&family.Add(to_prometheus(labels), buckets));
}

std::string MetricsRegistry::exposition() const {
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace spud::telemetry
