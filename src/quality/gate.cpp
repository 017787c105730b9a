// SPDX-License-Identifier: Apache-2.0
#include "quality/gate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "quality/gate_metrics.hpp"
#include "stats/sequential.hpp"

namespace spud::quality {
namespace {

constexpr double kImplausibleGain = 0.05;  // of perplexity, or of accuracy, beyond the interval

std::string short_digest(const std::string& digest) {
  return digest.empty() ? "none" : digest.substr(0, 12);
}

// Appends a sentence to `refusals` when two identities differ.
void require_equal(std::vector<std::string>& refusals, std::string_view what,
                   const std::string& measured, const std::string& expected) {
  if (measured == expected) return;
  refusals.push_back(fmt::format("{} differs: measured {}, expected {}", what,
                                 short_digest(measured), short_digest(expected)));
}

bool plausible(const SequenceMeasure& s) {
  return s.tokens > 0 && s.top1_same >= 0 && s.top1_same <= s.tokens &&
         std::isfinite(s.nll_reference) && std::isfinite(s.nll_candidate) && std::isfinite(s.kld) &&
         s.nll_reference >= 0 && s.nll_candidate >= 0;
}

std::vector<std::string> identity_refusals(const Evidence& evidence) {
  std::vector<std::string> refusals;
  if (evidence.candidate == nullptr) return {"the candidate was not measured"};
  const Measurement& m = *evidence.candidate;
  require_equal(refusals, "the validation text", m.sequences_digest,
                evidence.expected_sequences_digest);
  require_equal(refusals, "the original model", m.reference_digest,
                evidence.expected_reference_digest);
  require_equal(refusals, "the candidate file", m.candidate_digest,
                evidence.expected_candidate_digest);
  require_equal(refusals, "the tokenizer", m.tokenizer_digest, evidence.expected_tokenizer_digest);
  if (m.num_tokens() != evidence.expected_tokens || m.num_tokens() <= 0) {
    refusals.push_back(fmt::format("{} predictions were measured instead of {}", m.num_tokens(),
                                   evidence.expected_tokens));
  }
  if (std::ssize(m.token_kld) != m.num_tokens()) {
    refusals.push_back(fmt::format("the tail of the divergence has {} values for {} predictions",
                                   m.token_kld.size(), m.num_tokens()));
  }
  for (std::size_t i = 0; i < m.sequences.size(); ++i) {
    if (plausible(m.sequences[i])) continue;
    refusals.push_back(
        fmt::format("sequence {} gave no usable numbers (NaN or impossible)", i + 1));
    break;
  }
  return refusals;
}

std::string unpaired_sentence(const Measurement& candidate, const Measurement& accepted) {
  const std::size_t common = std::min(candidate.sequences.size(), accepted.sequences.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto& a = candidate.sequences[i];
    const auto& b = accepted.sequences[i];
    if (a.key != b.key || a.tokens != b.tokens) {
      return fmt::format("sequence {} of the last accepted model is another text", i + 1);
    }
  }
  return common == 0 ? "the last accepted model was measured on nothing" : "";
}

std::string unpaired_choices(std::span<const ChoiceResult> a, std::span<const ChoiceResult> b) {
  if (a.size() != b.size()) {
    return fmt::format("{} questions were answered instead of {}", b.size(), a.size());
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].question_id != b[i].question_id) {
      return fmt::format("question {} is '{}' instead of '{}'", i + 1, b[i].question_id,
                         a[i].question_id);
    }
  }
  return "";
}

// Marks a gain that no honest compression gives: a leak, or a wrong baseline.
void mark_implausible(Finding& finding) {
  if (finding.metric == "ppl_ratio" && finding.upper < 1 - kImplausibleGain) {
    finding.kind = VerdictKind::kAnomalous;
    finding.sentence += fmt::format(
        "; more than {:.0f} % better than the model it was made from is not believable: suspect a "
        "leak or a wrong baseline",
        kImplausibleGain * 100);
  }
  if (finding.metric == "mcq_drop" && finding.upper < -kImplausibleGain) {
    finding.kind = VerdictKind::kAnomalous;
    finding.sentence += "; a gain this large is not believable: suspect a leak";
  }
  if (finding.metric == "kld_mean" && finding.estimate < -1e-6) {
    finding.kind = VerdictKind::kAnomalous;
    finding.sentence += "; a divergence below zero is impossible: the instrument is broken";
  }
}

// Identical predictions (divergence zero) with different losses can not be.
bool contradicts_itself(const Measurement& m) {
  return std::ranges::any_of(m.sequences, [](const SequenceMeasure& s) {
    return std::abs(s.kld) < 1e-12 && std::abs(s.nll_candidate - s.nll_reference) > 1e-6;
  });
}

std::vector<Finding> all_findings(const Budget& budget, const Evidence& evidence, double alpha,
                                  std::vector<std::string>& refusals) {
  using namespace internal;
  const Measurement& m = *evidence.candidate;
  std::vector<Finding> findings;
  findings.push_back(ppl_ratio_finding(m, budget.ppl_ratio_max, alpha));
  findings.push_back(kld_mean_finding(m, budget.kld_mean_max, alpha));
  findings.push_back(top1_finding(m, budget.top1_min, alpha));
  findings.push_back(kld_tail_finding(m, budget.kld_p99_max, alpha));
  if (evidence.last_accepted != nullptr) {
    const std::string problem = unpaired_sentence(m, *evidence.last_accepted);
    if (problem.empty()) {
      findings.push_back(
          step_ppl_finding(m, *evidence.last_accepted, budget.step_ppl_ratio_max, alpha));
    } else {
      refusals.push_back(problem);
    }
  }
  const bool has_choices =
      !evidence.reference_choices.empty() || !evidence.candidate_choices.empty();
  if (has_choices) {
    const std::string problem =
        unpaired_choices(evidence.reference_choices, evidence.candidate_choices);
    if (problem.empty()) {
      findings.push_back(mcq_finding(evidence.reference_choices, evidence.candidate_choices,
                                     budget.mcq_drop_max, alpha));
    } else {
      refusals.push_back(problem);
    }
  } else if (budget.mcq_drop_max) {
    refusals.emplace_back(
        "the budget limits the loss of multiple-choice accuracy, but no questions "
        "were answered");
  }
  return findings;
}

VerdictKind overall(const Verdict& verdict) {
  if (!verdict.refusals.empty()) return VerdictKind::kFail;
  const auto any = [&](VerdictKind kind) {
    return std::ranges::any_of(verdict.findings, [kind](const Finding& f) {
      return f.kind == kind && (!f.watched || kind == VerdictKind::kAnomalous);
    });
  };
  if (any(VerdictKind::kAnomalous)) return VerdictKind::kAnomalous;
  if (any(VerdictKind::kFail)) return VerdictKind::kFail;
  if (any(VerdictKind::kInconclusive)) return VerdictKind::kInconclusive;
  // A budget without a single limit decides nothing.
  const bool decided =
      std::ranges::any_of(verdict.findings, [](const Finding& f) { return !f.watched; });
  return decided ? VerdictKind::kPass : VerdictKind::kInconclusive;
}

std::string summary(const Verdict& verdict) {
  const std::string name(to_string(verdict.kind));
  if (!verdict.refusals.empty()) return name + ": " + verdict.refusals.front();
  if (verdict.kind != VerdictKind::kPass) {
    for (const Finding& f : verdict.findings) {
      if (f.kind == verdict.kind && (!f.watched || f.kind == VerdictKind::kAnomalous)) {
        return name + ": " + f.sentence;
      }
    }
  }
  return fmt::format("{}: every limit holds on {} predictions of {} texts", name, verdict.tokens,
                     verdict.sequences);
}

}  // namespace

std::string_view to_string(VerdictKind kind) noexcept {
  switch (kind) {
    case VerdictKind::kPass:
      return "PASS";
    case VerdictKind::kFail:
      return "FAIL";
    case VerdictKind::kInconclusive:
      return "INCONCLUSIVE";
    case VerdictKind::kAnomalous:
      return "ANOMALOUS";
  }
  return "FAIL";
}

Verdict decide(const Budget& budget, const Evidence& evidence, std::size_t look) {
  SPUD_CHECK(look < budget.looks.size());
  Verdict verdict;
  verdict.look = look;
  verdict.looks = budget.looks.size();
  verdict.alpha_of_look =
      stats::look_levels(budget.looks, budget.alpha, stats::BoundaryShape::kPocock)[look];
  verdict.refusals = identity_refusals(evidence);
  if (evidence.candidate != nullptr) {
    verdict.sequences = std::ssize(evidence.candidate->sequences);
    verdict.tokens = evidence.candidate->num_tokens();
  }
  if (verdict.refusals.empty()) {
    verdict.findings = all_findings(budget, evidence, verdict.alpha_of_look, verdict.refusals);
    for (Finding& finding : verdict.findings) {
      if (!std::isfinite(finding.estimate)) {
        verdict.refusals.push_back(fmt::format("{} is not a number", finding.metric));
      }
      mark_implausible(finding);
    }
    if (contradicts_itself(*evidence.candidate)) {
      Finding& kld = verdict.findings[1];
      kld.kind = VerdictKind::kAnomalous;
      kld.sentence +=
          "; the losses differ although the divergence is zero: the instrument is broken";
    }
  }
  verdict.kind = overall(verdict);
  verdict.sentence = summary(verdict);
  return verdict;
}

Result<GateResult> run_gate(const Budget& budget, const GateInputs& inputs) {
  SPUD_CHECK(inputs.validation && inputs.original && inputs.candidate && inputs.pool);
  SPUD_CHECK(!budget.looks.empty());
  const auto& sequences = inputs.validation->sequences;
  GateResult result;
  Measurement& m = result.measurement;
  m.reference_digest = inputs.original_digest;
  m.candidate_digest = inputs.candidate_digest;
  m.tokenizer_digest = inputs.candidate_tokenizer_digest;

  for (std::size_t look = 0; look < budget.looks.size(); ++look) {
    const double share = std::clamp(budget.looks[look], 0.0, 1.0);
    const auto up_to =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(sequences.size()) - 1e-9));
    const auto drawn = std::span(sequences).first(std::min(up_to, sequences.size()));
    auto measured = measure(*inputs.validation, drawn.size(), *inputs.original, *inputs.candidate,
                            *inputs.pool, m, inputs.on_progress);
    if (!measured && measured.error().code() == ErrorCode::kCancelled) {
      return std::unexpected<Error>(std::move(measured).error());
    }
    if (!measured) {
      result.verdict.look = look;
      result.verdict.looks = budget.looks.size();
      result.verdict.refusals.push_back(measured.error().message());
      result.verdict.sentence = "FAIL: could not be measured: " + measured.error().message();
      return result;
    }
    Evidence evidence{.candidate = &m,
                      .last_accepted = inputs.last_accepted,
                      .expected_sequences_digest = digest_of(drawn),
                      .expected_reference_digest = inputs.original_digest,
                      .expected_candidate_digest = inputs.candidate_digest,
                      .expected_tokenizer_digest = inputs.tokenizer_digest,
                      .reference_choices = inputs.reference_choices,
                      .candidate_choices = inputs.candidate_choices};
    for (const Sequence& sequence : drawn) evidence.expected_tokens += sequence.num_scored();
    result.verdict = decide(budget, evidence, look);
    if (result.verdict.kind != VerdictKind::kInconclusive) break;
  }
  return result;
}

Result<void> check_instrument(const SequenceSet& validation, std::size_t sequences,
                              ReferenceLogits& original, engine::Scorer& original_again,
                              concurrency::ThreadPool& pool) {
  Measurement m;
  const std::size_t count = std::min(sequences, validation.sequences.size());
  SPUD_TRY(measure(validation, count, original, original_again, pool, m));
  for (const SequenceMeasure& s : m.sequences) {
    if (s.kld == 0 && s.top1_same == s.tokens && s.nll_candidate == s.nll_reference) continue;
    return fail(
        ErrorCode::kInternal,
        "the instrument is broken: the original against itself gives a divergence of {:.3g} "
        "nats and {} of {} equal predictions; it must give 0 and all",
        s.kld / static_cast<double>(s.tokens), s.top1_same, s.tokens);
  }
  return {};
}

}  // namespace spud::quality
