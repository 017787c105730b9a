// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/eval_report.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "base/json_text.hpp"
#include "console/table.hpp"
#include "console/text.hpp"
#include "quality/gate_metrics.hpp"
#include "stats/proportions.hpp"

namespace spud::app {
namespace {

constexpr double kAlpha = 0.025;  // of each bound: 95 % intervals

stats::Bounds exp_of(stats::Bounds b) {
  return {.estimate = std::exp(b.estimate), .lower = std::exp(b.lower), .upper = std::exp(b.upper)};
}

stats::Bounds perplexity_bounds(const quality::Measurement& m, bool of_reference) {
  std::vector<stats::ClusterSum> clusters;
  for (const auto& s : m.sequences) {
    clusters.push_back(
        {of_reference ? s.nll_reference : s.nll_candidate, static_cast<double>(s.tokens)});
  }
  return exp_of(stats::bootstrap_ratio(clusters, kAlpha));
}

stats::PairedCounts paired_counts(const EvalReport& report) {
  stats::PairedCounts counts;
  for (std::size_t i = 0; i < report.choices.size(); ++i) {
    const bool before = report.reference_choices[i].correct;
    const bool after = report.choices[i].correct;
    ++(before ? (after ? counts.both : counts.only_first)
              : (after ? counts.only_second : counts.neither));
  }
  return counts;
}

stats::Bounds accuracy(const std::vector<quality::ChoiceResult>& choices, bool normalised) {
  const auto right = std::ranges::count_if(choices, [normalised](const auto& c) {
    return normalised ? c.correct_normalised : c.correct;
  });
  return stats::wilson(right, std::ssize(choices), kAlpha);
}

// Fewer than two sequences give no interval: null.
boost::json::value interval(const stats::Bounds& b) {
  if (!std::isfinite(b.lower) || !std::isfinite(b.upper)) return nullptr;
  return boost::json::array{b.lower, b.upper};
}

void add_figure(boost::json::object& json, std::string_view key, const stats::Bounds& b) {
  json[key] = b.estimate;
  json[fmt::format("{}_interval", key)] = interval(b);
}

// By how much the mean divergence is higher than with the other type of keys and values, paired per
// sequence.
stats::Bounds kld_change(const EvalReport& report) {
  quality::Measurement change = report.measurement;
  for (std::size_t i = 0; i < change.sequences.size(); ++i) {
    change.sequences[i].kld -= report.compared.sequences[i].kld;
  }
  return quality::internal::kld_bounds(change, kAlpha);
}

void add_comparison(boost::json::object& json, const EvalReport& report) {
  const quality::Measurement& m = report.measurement;
  json["reference"] = report.reference;
  add_figure(json, "perplexity_reference", perplexity_bounds(m, true));
  add_figure(json, "perplexity_ratio", exp_of(quality::internal::log_ppl_ratio_bounds(m, kAlpha)));
  add_figure(json, "kld_mean", quality::internal::kld_bounds(m, kAlpha));
  if (!report.compared_kv_type.empty()) {
    json["compared_kv_type"] = report.compared_kv_type;
    add_figure(json, "kld_mean_compared", quality::internal::kld_bounds(report.compared, kAlpha));
    add_figure(json, "kld_mean_change", kld_change(report));
  }
  json["kld_p99"] = m.kld_quantile(0.99);
  add_figure(json, "top1_agreement", quality::internal::top1_bounds(m, kAlpha));
}

std::string figure(double value, int digits, double scale = 1) {
  return fmt::format("{:.{}f}", value * scale, digits);
}

void add_row(console::Table& table, std::string name, const stats::Bounds& b, int digits,
             double scale = 1, std::string_view unit = "") {
  const std::string range =
      std::isfinite(b.lower) && std::isfinite(b.upper)
          ? fmt::format("{} to {}", figure(b.lower, digits, scale), figure(b.upper, digits, scale))
          : "too few to say";
  table.add_row({std::move(name), figure(b.estimate, digits, scale) + std::string(unit), range});
}

}  // namespace

std::string to_json_text(const EvalReport& report) {
  const quality::Measurement& m = report.measurement;
  boost::json::object json{{"model", report.model}, {"data", report.data}};
  json["data_digest"] = report.data_digest;
  add_figure(json, "perplexity", perplexity_bounds(m, false));
  json["tokens"] = m.num_tokens();
  json[report.unit] = m.sequences.size();
  json["confidence"] = 1 - 2 * kAlpha;
  if (!report.reference.empty()) add_comparison(json, report);
  if (!report.choices.empty()) {
    add_figure(json, "mcq_accuracy", accuracy(report.choices, false));
    json["mcq_accuracy_normalised"] = accuracy(report.choices, true).estimate;
    json["mcq_questions"] = report.choices.size();
  }
  if (!report.choices.empty() && !report.reference_choices.empty()) {
    add_figure(json, "mcq_accuracy_reference", accuracy(report.reference_choices, false));
    const auto counts = paired_counts(report);
    add_figure(json, "mcq_drop", stats::newcombe_paired(counts, kAlpha));
    json["mcq_mcnemar_p"] = stats::mcnemar_exact(counts);
  }
  json["seconds"] = report.seconds;
  return pretty_json(json);
}

std::string to_table_text(const EvalReport& report) {
  const quality::Measurement& m = report.measurement;
  console::Table table(
      {{"measure"}, {"value", console::Align::kRight}, {"95 % interval", console::Align::kRight}});
  add_row(table, "perplexity", perplexity_bounds(m, false), 3);
  if (!report.reference.empty()) {
    add_row(table, "perplexity of the reference", perplexity_bounds(m, true), 3);
    add_row(table, "perplexity ratio", exp_of(quality::internal::log_ppl_ratio_bounds(m, kAlpha)),
            4);
    add_row(table, "mean KL divergence, nats", quality::internal::kld_bounds(m, kAlpha), 5);
    if (!report.compared_kv_type.empty()) {
      add_row(table, fmt::format("the same with {} keys and values", report.compared_kv_type),
              quality::internal::kld_bounds(report.compared, kAlpha), 5);
      add_row(table, "change, paired", kld_change(report), 5);
    }
    table.add_row({"99 % of divergences below", figure(m.kld_quantile(0.99), 4), ""});
    add_row(table, "same most likely token", quality::internal::top1_bounds(m, kAlpha), 2, 100,
            " %");
  }
  if (!report.choices.empty()) {
    add_row(table, "multiple choice right", accuracy(report.choices, false), 1, 100, " %");
    add_row(table, "multiple choice right, by length", accuracy(report.choices, true), 1, 100,
            " %");
  }
  if (!report.choices.empty() && !report.reference_choices.empty()) {
    add_row(table, "multiple choice, reference", accuracy(report.reference_choices, false), 1, 100,
            " %");
    add_row(table, "multiple choice lost, points",
            stats::newcombe_paired(paired_counts(report), kAlpha), 1, 100);
  }
  std::string text = table.to_text();
  text += fmt::format("\n{}: {} predictions in {} {} of {}, {:.1f} s", report.model,
                      console::format_count(static_cast<std::uint64_t>(m.num_tokens())),
                      m.sequences.size(), report.unit, report.data, report.seconds);
  if (!report.reference.empty()) text += fmt::format("; reference {}", report.reference);
  return text + "\n";
}

}  // namespace spud::app
