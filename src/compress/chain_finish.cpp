// SPDX-License-Identifier: Apache-2.0
// The end of a chain: the hold-out is looked at once, the certificate is bound to the accepted
// bytes and the artifact is written. Everything here can be repeated: a chain killed in the middle
// does it again and writes the same bytes.
#include <cstring>

#include "base/check.hpp"
#include "base/sha256.hpp"
#include "compress/chain_state.hpp"
#include "compress/report/report.hpp"
#include "io/atomic_file.hpp"
#include "io/mapped_file.hpp"
#include "quality/certificate.hpp"

namespace spud::compress::internal {
namespace {

namespace fs = std::filesystem;

Result<quality::Budget> accepted_budget(const ChainState& state) {
  return budget_of(state.options.recipe.steps[state.journal.accepted.step]);
}

Result<void> look_at_holdout(ChainState& state) {
  if (state.journal.holdout) return {};
  state.progress("measuring the hold-out", 0, 0);
  SPUD_TRY(const quality::Measurement measured, state.measurer->measure_holdout(state.accepted));
  SPUD_TRY(quality::Budget budget, accepted_budget(state));
  budget.looks = {1.0};
  budget.mcq_drop_max.reset();        // questions are part of validation only
  budget.step_ppl_ratio_max.reset();  // there is one artifact and no step
  const quality::SequenceSet& set = state.measurer->holdout();
  state.journal.holdout =
      quality::decide(budget,
                      {.candidate = &measured,
                       .expected_sequences_digest = set.digest,
                       .expected_reference_digest = state.journal.original_digest,
                       .expected_candidate_digest = state.journal.accepted.tensor_digest,
                       .expected_tokenizer_digest = state.tokenizer_digest,
                       .expected_tokens = set.num_scored()},
                      0);
  state.journal.holdout_perplexity = measured.perplexity_candidate();
  state.journal.holdout_perplexity_original = measured.perplexity_reference();
  return state.save();
}

// Speeds differ from run to run and would make the artifact do so too: they stay in the journal.
std::string certificate_reason(const Attempt& attempt) {
  return attempt.stage == "speed" ? "slower than its rule allows" : attempt.reason;
}

void add_steps(const Journal& journal, quality::Certificate& certificate) {
  for (const StepRecord& step : journal.steps) {
    if (step.attempts.empty()) {
      certificate.steps.push_back(
          {.step = step.pass, .alternative = "", .verdict = "SKIPPED", .reason = step.reason});
    }
    for (const Attempt& attempt : step.attempts) {
      certificate.steps.push_back(
          {.step = step.pass,
           .alternative = attempt.alternative,
           .verdict = attempt.verdict ? std::string(to_string(attempt.verdict->kind)) : "REFUSED",
           .reason = certificate_reason(attempt)});
    }
  }
  certificate.steps.push_back({.step = "hold-out",
                               .alternative = "",
                               .verdict = std::string(to_string(journal.holdout->kind)),
                               .reason = journal.holdout->sentence});
}

// Findings are worked out again from the exact measurement: the journal's decimals may be one unit
// in the last place off after a resume, the certificate's must not.
Result<quality::Certificate> make_certificate(ChainState& state) {
  const Journal& journal = state.journal;
  SPUD_CHECK(state.accepted_measured.has_value());
  const Measured& measured = *state.accepted_measured;
  std::vector<quality::ChoiceResult> reference_choices;
  if (!measured.choices.empty()) {
    SPUD_TRY(reference_choices, state.measurer->reference_choices());
  }
  quality::Certificate certificate;
  certificate.spud_version = journal.spud_version;
  certificate.model_name = journal.model_name;
  certificate.original_tensor_digest = journal.original_digest;
  SPUD_TRY(certificate.budget, accepted_budget(state));
  quality::Budget budget = certificate.budget;
  budget.step_ppl_ratio_max.reset();  // the state before the last step is gone; the total counts
  const quality::Verdict verdict =
      quality::decide(budget,
                      {.candidate = &measured.measurement,
                       .expected_sequences_digest = measured.measurement.sequences_digest,
                       .expected_reference_digest = journal.original_digest,
                       .expected_candidate_digest = journal.accepted.tensor_digest,
                       .expected_tokenizer_digest = state.tokenizer_digest,
                       .expected_tokens = measured.measurement.num_tokens(),
                       .reference_choices = reference_choices,
                       .candidate_choices = measured.choices},
                      measured.look);
  if (verdict.kind != quality::VerdictKind::kPass) {
    return fail(ErrorCode::kDataLoss, "the accepted measurement does not pass any more: {}",
                verdict.sentence);
  }
  certificate.findings = verdict.findings;
  for (const DataUse& use : journal.data) {
    certificate.datasets.push_back({.use = use.use,
                                    .name = use.name,
                                    .digest = use.digest,
                                    .sequences = use.sequences,
                                    .tokens = use.tokens});
  }
  add_steps(journal, certificate);
  quality::bind(certificate, *state.accepted);
  return certificate;
}

Result<void> write_artifact(ChainState& state, const fs::path& path,
                            const quality::Certificate* certificate) {
  const formats::ModelFile& file = *state.accepted;
  std::vector<formats::WriteTensor> tensors;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    tensors.push_back({.info = file.tensors()[i], .fill = [&file, i](auto out) {
                         const auto bytes = file.tensor_bytes(i);
                         SPUD_CHECK(bytes.size() == out.size());
                         std::memcpy(out.data(), bytes.data(), bytes.size());
                         return Result<void>{};
                       }});
  }
  formats::Metadata metadata = file.metadata();
  if (certificate != nullptr) quality::attach(*certificate, metadata);
  return formats::write_gguf(path, metadata, tensors);
}

// As a server would look at it.
Result<void> check_artifact(const fs::path& path) {
  SPUD_TRY(const FilePtr file, formats::ModelFile::open(path));
  const quality::CertificateCheck check = quality::check_certificate(*file);
  if (check.status != quality::CertificateStatus::kCertified) {
    return fail(ErrorCode::kDataLoss, "the artifact that was just written is {}: {}",
                quality::to_string(check.status), check.reason);
  }
  return {};
}

Result<void> write_accepted(ChainState& state) {
  const fs::path path = state.options.folder / kArtifactName;
  SPUD_TRY(look_at_holdout(state));
  state.progress("writing the artifact", 0, 0);
  // The hold-out can only take away: unclear on little data is no objection, a failure is.
  if (holdout_failed(state.journal)) {
    SPUD_TRY(write_artifact(state, path, nullptr));
  } else {
    SPUD_TRY(const quality::Certificate certificate, make_certificate(state));
    SPUD_TRY(write_artifact(state, path, &certificate));
    SPUD_TRY(check_artifact(path));
    SPUD_TRY(io::write_file_atomically(state.options.folder / "certificate.json",
                                       quality::to_json(certificate)));
  }
  SPUD_TRY(const io::MappedFile mapped, io::MappedFile::open(path));
  state.journal.artifact_digest = sha256_hex(mapped.bytes());
  return {};
}

}  // namespace

Result<void> finish_chain(ChainState& state) {
  state.current_step = "artifact";
  state.current_alternative.clear();
  if (!state.journal.accepted.file.empty()) {
    SPUD_TRY(write_accepted(state));
  }
  state.journal.finished = true;
  SPUD_TRY(write_reports(state.journal, *state.accepted, state.options.folder));
  SPUD_TRY(state.save());
  std::error_code ignored;  // what stays behind costs disk space only
  fs::remove_all(state.work_folder, ignored);
  return {};
}

}  // namespace spud::compress::internal
