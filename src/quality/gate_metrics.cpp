// SPDX-License-Identifier: Apache-2.0
#include "quality/gate_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stats/non_inferiority.hpp"
#include "stats/proportions.hpp"

namespace spud::quality::internal {
namespace {

using stats::Bounds;
using stats::ClusterSum;

template <typename Numerator>
Bounds ratio_over_tokens(const Measurement& m, double alpha, Numerator numerator) {
  std::vector<ClusterSum> clusters;
  clusters.reserve(m.sequences.size());
  for (const SequenceMeasure& s : m.sequences) {
    clusters.push_back({numerator(s), static_cast<double>(s.tokens)});
  }
  return stats::bootstrap_ratio(clusters, alpha);
}

Bounds exp_of(Bounds b) {
  b.estimate = std::exp(b.estimate);
  b.lower = std::exp(b.lower);
  b.upper = std::exp(b.upper);
  b.standard_error *= b.estimate;
  return b;
}

enum class Better { kLess, kMore };

struct Labels {
  const char* metric;
  const char* against;
  const char* words;      // "perplexity / original's"
  double scale = 1;       // for people: 100 for percent
  const char* unit = "";  // " %"
  int digits = 4;
};

std::string show(double value, const Labels& labels) {
  return fmt::format("{:.{}f}{}", value * labels.scale, labels.digits, labels.unit);
}

VerdictKind kind_of(stats::Decision decision) {
  switch (decision) {
    case stats::Decision::kHolds:
      return VerdictKind::kPass;
    case stats::Decision::kRefuted:
      return VerdictKind::kFail;
    case stats::Decision::kUndecided:
      return VerdictKind::kInconclusive;
  }
  return VerdictKind::kInconclusive;
}

std::string_view consequence(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kPass:
      return "holds";
    case VerdictKind::kFail:
      return "is broken";
    default:
      return "is not decided by these texts";
  }
}

Finding make_finding(const Labels& labels, const Bounds& b, std::optional<double> limit,
                     Better better) {
  Finding f{.metric = labels.metric,
            .against = labels.against,
            .watched = !limit.has_value(),
            .estimate = b.estimate,
            .lower = b.lower,
            .upper = b.upper,
            .limit = limit.value_or(std::numeric_limits<double>::quiet_NaN())};
  const std::string figures = fmt::format(
      "{} {} (from {} to {}, each bound {:.1f} % sure)", labels.words, show(b.estimate, labels),
      show(b.lower, labels), show(b.upper, labels), 100 * (1 - b.alpha));
  if (f.watched) {
    f.kind = VerdictKind::kPass;
    f.sentence = figures + ", watched only";
    return f;
  }
  f.kind =
      kind_of(better == Better::kLess ? stats::at_most(b, *limit) : stats::at_least(b, *limit));
  f.sentence = fmt::format("{}: the limit of {} {} {}", figures,
                           better == Better::kLess ? "at most" : "at least", show(*limit, labels),
                           consequence(f.kind));
  return f;
}

}  // namespace

Bounds log_ppl_ratio_bounds(const Measurement& m, double alpha) {
  return ratio_over_tokens(
      m, alpha, [](const SequenceMeasure& s) { return s.nll_candidate - s.nll_reference; });
}

Bounds kld_bounds(const Measurement& m, double alpha) {
  return ratio_over_tokens(m, alpha, [](const SequenceMeasure& s) { return s.kld; });
}

Bounds top1_bounds(const Measurement& m, double alpha) {
  return ratio_over_tokens(
      m, alpha, [](const SequenceMeasure& s) { return static_cast<double>(s.top1_same); });
}

Finding ppl_ratio_finding(const Measurement& m, std::optional<double> limit, double alpha) {
  return make_finding({"ppl_ratio", "original", "perplexity over the original's"},
                      exp_of(log_ppl_ratio_bounds(m, alpha)), limit, Better::kLess);
}

Finding kld_mean_finding(const Measurement& m, std::optional<double> limit, double alpha) {
  return make_finding({"kld_mean", "original", "mean divergence from the original", 1, " nats"},
                      kld_bounds(m, alpha), limit, Better::kLess);
}

Finding top1_finding(const Measurement& m, std::optional<double> limit, double alpha) {
  return make_finding({"top1_agreement", "original", "same most likely token", 100, " %", 2},
                      top1_bounds(m, alpha), limit, Better::kMore);
}

Finding kld_tail_finding(const Measurement& m, std::optional<double> limit, double alpha) {
  // The tail of the pooled tokens; resampled by whole sequences.
  std::vector<std::size_t> starts(1, 0);
  for (const SequenceMeasure& s : m.sequences) {
    starts.push_back(starts.back() + static_cast<std::size_t>(s.tokens));
  }
  std::vector<float> pooled;
  const auto tail = [&](std::span<const std::size_t> sequences) {
    pooled.clear();
    for (const std::size_t i : sequences) {
      pooled.insert(pooled.end(), m.token_kld.begin() + static_cast<std::ptrdiff_t>(starts[i]),
                    m.token_kld.begin() + static_cast<std::ptrdiff_t>(starts[i + 1]));
    }
    const auto place =
        pooled.begin() + static_cast<std::ptrdiff_t>(0.99 * static_cast<double>(pooled.size() - 1));
    std::ranges::nth_element(pooled, place);
    return static_cast<double>(*place);
  };
  const Bounds b =
      stats::bootstrap(m.sequences.size(), tail, alpha,
                       {.resamples = 500, .method = stats::BootstrapMethod::kPercentile});
  return make_finding({"kld_p99", "original", "99 % of the divergences are below", 1, " nats"}, b,
                      limit, Better::kLess);
}

Finding step_ppl_finding(const Measurement& m, const Measurement& last_accepted,
                         std::optional<double> limit, double alpha) {
  std::vector<ClusterSum> clusters;
  const std::size_t common = std::min(m.sequences.size(), last_accepted.sequences.size());
  for (std::size_t i = 0; i < common; ++i) {
    clusters.push_back({m.sequences[i].nll_candidate - last_accepted.sequences[i].nll_candidate,
                        static_cast<double>(m.sequences[i].tokens)});
  }
  return make_finding({"ppl_ratio", "last accepted", "perplexity over the last accepted model's"},
                      exp_of(stats::bootstrap_ratio(clusters, alpha)), limit, Better::kLess);
}

Finding mcq_finding(std::span<const ChoiceResult> reference,
                    std::span<const ChoiceResult> candidate, std::optional<double> limit,
                    double alpha) {
  stats::PairedCounts counts;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const bool before = reference[i].correct;
    const bool after = candidate[i].correct;
    ++(before ? (after ? counts.both : counts.only_first)
              : (after ? counts.only_second : counts.neither));
  }
  return make_finding(
      {"mcq_drop", "original", "loss of multiple-choice accuracy", 100, " points", 1},
      stats::newcombe_paired(counts, alpha), limit, Better::kLess);
}

}  // namespace spud::quality::internal
