// SPDX-License-Identifier: Apache-2.0
// What a load test found, for people and for programs.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "loadgen/runner.hpp"
#include "loadgen/slo.hpp"
#include "loadgen/summary.hpp"
#include "loadgen/tenant.hpp"

namespace spud::app {

// The definitions of all latencies, printed under every table.
std::string latency_definitions();

void print_load_report(const std::vector<loadgen::TenantOptions>& tenants,
                       const loadgen::RunResult& result, const loadgen::Slo& slo);
boost::json::object load_report_to_json(const std::vector<loadgen::TenantOptions>& tenants,
                                        const loadgen::RunResult& result, const loadgen::Slo& slo);
boost::json::object summary_to_json(const loadgen::Summary& summary);

}  // namespace spud::app
