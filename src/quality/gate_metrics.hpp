// SPDX-License-Identifier: Apache-2.0
// One metric = one function from a measurement to a finding: estimate, interval, limit, what
// follows. A limit that is absent makes the finding "watched". Pure.
#pragma once

#include <optional>
#include <span>

#include "quality/gate.hpp"
#include "stats/bootstrap.hpp"

namespace spud::quality::internal {

Finding ppl_ratio_finding(const Measurement& m, std::optional<double> limit, double alpha);
Finding kld_mean_finding(const Measurement& m, std::optional<double> limit, double alpha);
Finding top1_finding(const Measurement& m, std::optional<double> limit, double alpha);
Finding kld_tail_finding(const Measurement& m, std::optional<double> limit, double alpha);
Finding step_ppl_finding(const Measurement& m, const Measurement& last_accepted,
                         std::optional<double> limit, double alpha);
Finding mcq_finding(std::span<const ChoiceResult> reference,
                    std::span<const ChoiceResult> candidate, std::optional<double> limit,
                    double alpha);

// The intervals behind them, for tables and the power check.
stats::Bounds log_ppl_ratio_bounds(const Measurement& m, double alpha);
stats::Bounds kld_bounds(const Measurement& m, double alpha);
stats::Bounds top1_bounds(const Measurement& m, double alpha);

}  // namespace spud::quality::internal
