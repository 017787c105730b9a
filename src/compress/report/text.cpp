// SPDX-License-Identifier: Apache-2.0
// The report as text: terminal table, headline, Markdown, JSON.
#include "console/text.hpp"

#include "compress/report/figures.hpp"
#include "compress/report/report.hpp"

namespace spud::compress {
namespace {

using console::Align;

std::string status_row_reason(const StepRecord& step) {
  return step.status == StepStatus::kSkipped ? step.reason : "";
}

std::vector<std::string> attempt_row(const Journal& journal, const StepRecord& step,
                                     const Attempt& attempt) {
  return {step.pass,
          report::attempt_name(attempt),
          report::size_text(attempt, journal),
          report::finding_text(attempt, "ppl_ratio", 4),
          report::finding_text(attempt, "kld_mean", 4),
          report::finding_text(attempt, "top1_agreement", 3),
          attempt.speed ? report::ratio_text(attempt.speed->prefill) : "-",
          attempt.speed ? report::ratio_text(attempt.speed->decode) : "-",
          report::verdict_word(attempt)};
}

void add_reasons(std::string& text, const Journal& journal) {
  for (const StepRecord& step : journal.steps) {
    if (step.status == StepStatus::kSkipped) {
      text += fmt::format("- **{}**: skipped: {}\n", step.pass, step.reason);
    }
    for (const Attempt& attempt : step.attempts) {
      text += fmt::format("- **{} {}**: {}. {}{}{}\n", step.pass, report::attempt_name(attempt),
                          report::verdict_word(attempt), attempt.reason,
                          attempt.note.empty() ? "" : " — ", attempt.note);
    }
  }
}

}  // namespace

console::Table verdict_table(const Journal& journal) {
  console::Table table({{.title = "step"},
                        {.title = "alternative"},
                        {.title = "size (of original)", .align = Align::kRight},
                        {.title = "perplexity ratio", .align = Align::kRight},
                        {.title = "KL divergence", .align = Align::kRight},
                        {.title = "top-1 agreement", .align = Align::kRight},
                        {.title = "prefill speed", .align = Align::kRight},
                        {.title = "decode speed", .align = Align::kRight},
                        {.title = "verdict"}});
  for (const StepRecord& step : journal.steps) {
    for (const Attempt& attempt : step.attempts) {
      table.add_row(attempt_row(journal, step, attempt));
    }
    if (step.attempts.empty()) {
      table.add_row({step.pass, status_row_reason(step), "-", "-", "-", "-", "-", "-",
                     std::string(to_string(step.status))});
    }
  }
  return table;
}

std::string headline(const Journal& journal) {
  const Attempt* accepted = report::find_accepted(journal);
  if (accepted == nullptr) {
    return "Nothing was accepted: no candidate passed its gate, the original stands.";
  }
  std::string text = fmt::format(
      "Accepted: {} {}, {}, perplexity {:.2f} against the original's {:.2f}.",
      journal.steps[journal.accepted.step].pass, report::attempt_name(*accepted),
      report::size_text(*accepted, journal), accepted->perplexity, accepted->perplexity_original);
  if (journal.holdout) text += fmt::format(" Hold-out: {}.", journal.holdout->sentence);
  return text;
}

bool holdout_failed(const Journal& journal) {
  return journal.holdout && (journal.holdout->kind == quality::VerdictKind::kFail ||
                             journal.holdout->kind == quality::VerdictKind::kAnomalous);
}

std::string method_text(const Journal& journal) {
  std::string text = fmt::format(
      "Model: {} ({}). {}Measured with {}. Perplexity ratio, KL divergence and top-1 agreement are "
      "against the original, on whole texts, with intervals from resampling texts (each bound at "
      "the level of the look at which it was decided). Speeds are ratios to the last accepted "
      "artifact, medians of interleaved runs with 95 % bootstrap intervals. Sizes are bytes of the "
      "written files.",
      journal.model_name, journal.source_types,
      journal.dequantised
          ? "It arrived quantised: the original of this chain is its dequantised 16-bit version. "
          : "",
      journal.environment);
  return text;
}

std::string render_markdown(const Journal& journal) {
  std::string text = fmt::format("# Shrinking {}\n\n{}\n\n", journal.model_name, headline(journal));
  text += verdict_table(journal).to_markdown();
  text += "\n## Verdicts\n\n";
  add_reasons(text, journal);
  text += fmt::format("\n## How it was measured\n\n{}\n", method_text(journal));
  console::Table data({{.title = "data"},
                       {.title = "source"},
                       {.title = "texts", .align = Align::kRight},
                       {.title = "scored tokens", .align = Align::kRight},
                       {.title = "SHA-256"}});
  for (const DataUse& use : journal.data) {
    data.add_row(
        {use.use, use.name, std::to_string(use.sequences), std::to_string(use.tokens), use.digest});
  }
  text += "\n" + data.to_markdown();
  return text;
}

std::string render_json(const Journal& journal) { return to_json(journal); }

}  // namespace spud::compress
