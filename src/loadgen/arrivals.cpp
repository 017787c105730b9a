// SPDX-License-Identifier: Apache-2.0
#include "loadgen/arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace spud::loadgen {
namespace {

using Random = std::mt19937_64;

// Requests a closed loop of a given length could at most want.
constexpr std::size_t kMaxClosed = 1 << 17;

// The standard's distributions differ between libraries; these do not, so a seed means one plan.
double uniform(Random& random) { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; }

double exponential(Random& random) { return -std::log(uniform(random)); }

double normal(Random& random) {
  return std::sqrt(2 * exponential(random)) * std::cos(2 * M_PI * uniform(random));
}

// Marsaglia and Tsang (2000), mean `shape`.
double gamma(Random& random, double shape) {
  if (shape < 1) return gamma(random, shape + 1) * std::pow(uniform(random), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(random);
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(uniform(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

std::int64_t draw(Random& random, const Lengths& lengths) {
  const auto range = static_cast<std::uint64_t>(lengths.most - lengths.least) + 1;
  return lengths.least + static_cast<std::int64_t>(random() % range);
}

// Seconds to the next arrival.
double draw_gap(Random& random, const TenantOptions& tenant) {
  switch (tenant.arrivals) {
    case ArrivalKind::kPoisson:
      return exponential(random) / tenant.rate;
    case ArrivalKind::kGamma: {
      const double shape = 1 / (tenant.cv * tenant.cv);
      return gamma(random, shape) / shape / tenant.rate;
    }
    case ArrivalKind::kConstant:
      return 1 / tenant.rate;
    default:
      return 0;
  }
}

Nanoseconds to_time(double seconds) { return Nanoseconds(std::llround(seconds * 1e9)); }

class Planner {
 public:
  Planner(const TenantOptions& tenant, std::uint16_t index, Nanoseconds duration,
          std::uint64_t seed)
      : tenant_(tenant), index_(index), duration_(duration), random_(seed) {}

  Result<std::vector<Planned>> run() {
    switch (tenant_.arrivals) {
      case ArrivalKind::kTrace:
        return replay();
      case ArrivalKind::kBurst:
        return same_time(static_cast<std::size_t>(tenant_.requests));
      case ArrivalKind::kClosed:
        return same_time(tenant_.requests > 0 ? static_cast<std::size_t>(tenant_.requests)
                                              : kMaxClosed);
      default:
        return with_gaps();
    }
  }

 private:
  Planned make(double at_s) {
    return {.at = to_time(at_s),
            .tenant = index_,
            .prompt_tokens = draw(random_, tenant_.prompt),
            .output_tokens = draw(random_, tenant_.output),
            .seed = random_()};
  }

  // False: enough. An arrival beyond the limit on all of them is an error.
  bool wanted(double at_s) const {
    const bool more = tenant_.requests == 0 || std::ssize(planned_) < tenant_.requests;
    return more && to_time(at_s) < duration_ && planned_.size() <= kMaxPlanned;
  }

  Result<std::vector<Planned>> with_gaps() {
    double at = tenant_.start_s;
    // A constant stream begins at once, a random one with a gap like all others.
    if (tenant_.arrivals != ArrivalKind::kConstant) at += draw_gap(random_, tenant_);
    for (; wanted(at); at += draw_gap(random_, tenant_)) planned_.push_back(make(at));
    return finish();
  }

  Result<std::vector<Planned>> same_time(std::size_t count) {
    if (count > kMaxPlanned) return too_many();
    while (planned_.size() < count) planned_.push_back(make(tenant_.start_s));
    return finish();
  }

  Result<std::vector<Planned>> replay() {
    for (const TraceEntry& entry : tenant_.trace) {
      const double at = tenant_.start_s + entry.at_s / tenant_.speed;
      if (!wanted(at)) break;
      planned_.push_back({.at = to_time(at),
                          .tenant = index_,
                          .prompt_tokens = std::max<std::int64_t>(1, entry.prompt_tokens),
                          .output_tokens = std::max<std::int64_t>(1, entry.output_tokens),
                          .seed = random_()});
    }
    return finish();
  }

  static std::unexpected<Error> too_many() {
    return fail(ErrorCode::kInvalidArgument,
                "the run would send more than {} requests; shorten it or lower the rate",
                kMaxPlanned);
  }

  Result<std::vector<Planned>> finish() {
    if (planned_.size() > kMaxPlanned) return too_many();
    return std::move(planned_);
  }

  const TenantOptions& tenant_;
  std::uint16_t index_;
  Nanoseconds duration_;
  Random random_;
  std::vector<Planned> planned_;
};

}  // namespace

Result<Plan> make_plan(const std::vector<TenantOptions>& tenants, Nanoseconds duration,
                       std::uint64_t seed) {
  Plan plan;
  plan.closed.resize(tenants.size());
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    SPUD_TRY(tenants[i].validate());
    Planner planner(tenants[i], static_cast<std::uint16_t>(i), duration, seed + i);
    SPUD_TRY(std::vector<Planned> planned, planner.run());
    if (tenants[i].arrivals == ArrivalKind::kClosed) {
      plan.closed[i] = std::move(planned);
    } else {
      plan.open.insert(plan.open.end(), planned.begin(), planned.end());
    }
  }
  if (plan.open.size() > kMaxPlanned) {
    return fail(ErrorCode::kInvalidArgument,
                "the run would send more than {} requests; shorten it or lower the rate",
                kMaxPlanned);
  }
  std::ranges::stable_sort(plan.open, {}, &Planned::at);
  return plan;
}

}  // namespace spud::loadgen
