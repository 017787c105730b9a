// SPDX-License-Identifier: Apache-2.0
// Normal and Student distributions, as far as intervals need them. Pure functions, accurate to
// about 1e-12 (normal) and 1e-10 (Student).
#pragma once

namespace spud::stats {

double normal_cdf(double z) noexcept;
// 0 < p < 1; infinite at the ends.
double normal_quantile(double p) noexcept;

double student_cdf(double t, double degrees_of_freedom) noexcept;
double student_quantile(double p, double degrees_of_freedom) noexcept;

}  // namespace spud::stats
