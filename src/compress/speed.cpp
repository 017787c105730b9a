// SPDX-License-Identifier: Apache-2.0
#include "compress/speed.hpp"

#include <algorithm>
#include <random>

#include "base/check.hpp"

namespace spud::compress {
namespace {

constexpr int kResamples = 2000;
constexpr double kTail = 0.025;  // two-sided 95 %

double median(std::vector<double>& values) {
  SPUD_CHECK(!values.empty());
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) /
         2;
}

double tokens_per_second(std::int64_t tokens, const std::vector<SpeedSample>& samples,
                         double SpeedSample::* field) {
  std::vector<double> seconds;
  for (const SpeedSample& sample : samples) seconds.push_back(sample.*field);
  return static_cast<double>(tokens) / median(seconds);
}

class Comparison {
 public:
  Comparison(const SpeedPlan& plan, const SpeedRun& baseline, const SpeedRun& candidate)
      : plan_(plan), baseline_(baseline), candidate_(candidate) {}

  Result<SpeedComparison> run() {
    SPUD_TRY(const SpeedSample warm_baseline, baseline_());
    SPUD_TRY(const SpeedSample warm_candidate, candidate_());
    static_cast<void>(warm_baseline);
    static_cast<void>(warm_candidate);
    while (!enough()) {
      SPUD_TRY(run_pair());
    }
    return summary();
  }

 private:
  std::int64_t pairs() const { return static_cast<std::int64_t>(candidates_.size()); }

  // The order alternates, so that a machine that slows down slows both.
  Result<void> run_pair() {
    const bool baseline_first = pairs() % 2 == 0;
    SPUD_TRY(const SpeedSample first, baseline_first ? baseline_() : candidate_());
    SPUD_TRY(const SpeedSample second, baseline_first ? candidate_() : baseline_());
    baselines_.push_back(baseline_first ? first : second);
    candidates_.push_back(baseline_first ? second : first);
    for (const SpeedSample* sample : {&first, &second}) {
      if (!(sample->prefill_seconds > 0) || !(sample->decode_seconds > 0)) {
        return fail(ErrorCode::kInternal, "a speed run took no time: the clock is broken");
      }
    }
    return {};
  }

  RatioInterval ratio(double SpeedSample::* field) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      ratios.push_back(baselines_[i].*field / candidates_[i].*field);
    }
    return median_ratio(std::move(ratios));
  }

  bool enough() const {
    if (pairs() < plan_.pairs) return false;
    if (pairs() >= plan_.max_pairs) return true;
    const auto decided = [](const RatioInterval& r, double limit) {
      return r.lower >= limit || r.upper < limit;
    };
    return decided(ratio(&SpeedSample::prefill_seconds), plan_.prefill_limit) &&
           decided(ratio(&SpeedSample::decode_seconds), plan_.decode_limit);
  }

  SpeedComparison summary() const {
    const auto prefill = &SpeedSample::prefill_seconds;
    const auto decode = &SpeedSample::decode_seconds;
    return {
        .pairs = pairs(),
        .prefill = ratio(prefill),
        .decode = ratio(decode),
        .prefill_tokens_per_s = tokens_per_second(plan_.prefill_tokens, candidates_, prefill),
        .decode_tokens_per_s = tokens_per_second(plan_.decode_tokens, candidates_, decode),
        .baseline_prefill_tokens_per_s =
            tokens_per_second(plan_.prefill_tokens, baselines_, prefill),
        .baseline_decode_tokens_per_s = tokens_per_second(plan_.decode_tokens, baselines_, decode)};
  }

  const SpeedPlan& plan_;
  const SpeedRun& baseline_;
  const SpeedRun& candidate_;
  std::vector<SpeedSample> baselines_;
  std::vector<SpeedSample> candidates_;
};

}  // namespace

RatioInterval median_ratio(std::vector<double> ratios) {
  std::mt19937_64 random(20260101);
  std::vector<double> medians;
  std::vector<double> sample(ratios.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : sample) value = ratios[random() % ratios.size()];
    medians.push_back(median(sample));
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double q) {
    return medians[static_cast<std::size_t>(q * static_cast<double>(medians.size() - 1))];
  };
  return {.estimate = median(ratios), .lower = at(kTail), .upper = at(1 - kTail)};
}

Result<SpeedComparison> compare_speed(const SpeedPlan& plan, const SpeedRun& baseline,
                                      const SpeedRun& candidate) {
  return Comparison(plan, baseline, candidate).run();
}

}  // namespace spud::compress
