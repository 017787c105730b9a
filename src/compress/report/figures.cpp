// SPDX-License-Identifier: Apache-2.0
#include "compress/report/figures.hpp"

#include "console/text.hpp"

namespace spud::compress::report {

const quality::Finding* find_finding(const Attempt& attempt, std::string_view metric) {
  if (!attempt.verdict) return nullptr;
  for (const quality::Finding& finding : attempt.verdict->findings) {
    if (finding.metric == metric && finding.against == "original") return &finding;
  }
  return nullptr;
}

std::string ratio_text(const RatioInterval& ratio) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.estimate, ratio.lower, ratio.upper);
}

std::string finding_text(const Attempt& attempt, std::string_view metric, int digits) {
  const quality::Finding* finding = find_finding(attempt, metric);
  if (finding == nullptr) return "-";
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", finding->estimate, digits, finding->lower,
                     digits, finding->upper, digits);
}

std::string size_text(const Attempt& attempt, const Journal& journal) {
  if (attempt.bytes == 0) return "-";
  return fmt::format(
      "{} ({:.1f} %)", console::format_bytes(attempt.bytes),
      100.0 * static_cast<double>(attempt.bytes) / static_cast<double>(journal.original_bytes));
}

std::string attempt_name(const Attempt& attempt) {
  return attempt.attempt == 0 ? attempt.alternative
                              : fmt::format("{}, try {}", attempt.alternative, attempt.attempt + 1);
}

std::string verdict_word(const Attempt& attempt) {
  if (attempt.state != AttemptState::kDecided) return "unfinished";
  if (attempt.decision == Decision::kAccepted) return "accepted";
  return fmt::format("refused ({})", attempt.stage);
}

const Attempt* find_accepted(const Journal& journal) {
  if (journal.accepted.file.empty()) return nullptr;
  return &journal.steps.at(journal.accepted.step).attempts.at(journal.accepted.attempt);
}

}  // namespace spud::compress::report
