// SPDX-License-Identifier: Apache-2.0
// One candidate: written, reloaded, checked, measured, timed, decided. Each stage is journalled
// when it is done; a resumed chain enters at the first stage that is not.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/check.hpp"
#include "compress/chain_state.hpp"
#include "compress/decision.hpp"
#include "io/atomic_file.hpp"
#include "quality/integrity.hpp"

namespace spud::compress::internal {
namespace {

namespace fs = std::filesystem;

class CandidateRun {
 public:
  CandidateRun(ChainState& state, std::size_t step_idx, const Pass& pass,
               const Alternative& alternative, int attempt)
      : state_(state),
        step_(state.options.recipe.steps[step_idx]),
        step_idx_(step_idx),
        pass_(pass),
        alternative_(alternative),
        attempt_number_(attempt),
        attempt_idx_(find_or_add()),
        started_(state.clock.now()),
        seconds_before_(record().seconds) {}

  Result<Decision> run() {
    for (const auto stage : {&CandidateRun::write, &CandidateRun::check, &CandidateRun::measure,
                             &CandidateRun::time}) {
      SPUD_TRY(state_.check_cancelled());
      SPUD_TRY((this->*stage)());
      if (refused_) return Decision::kRefused;
    }
    SPUD_TRY(accept());
    return Decision::kAccepted;
  }

 private:
  StepRecord& step_record() { return state_.journal.steps[step_idx_]; }
  Attempt& record() { return step_record().attempts[attempt_idx_]; }

  std::size_t find_or_add() {
    auto& attempts = step_record().attempts;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (attempts[i].alternative == alternative_.name && attempts[i].attempt == attempt_number_) {
        return i;
      }
    }
    attempts.push_back({.alternative = std::string(alternative_.name),
                        .attempt = attempt_number_,
                        .file = fmt::format("step-{:02}-{}-{}-{}.gguf", step_idx_ + 1, pass_.name,
                                            alternative_.name, attempt_number_ + 1)});
    return attempts.size() - 1;
  }

  void take_time() {
    record().seconds =
        seconds_before_ + std::chrono::duration<double>(state_.clock.now() - started_).count();
  }

  Result<void> refuse(std::string_view stage, std::string reason) {
    record().state = AttemptState::kDecided;
    record().decision = Decision::kRefused;
    record().stage = stage;
    record().reason = std::move(reason);
    take_time();
    SPUD_TRY(state_.save());
    refused_ = true;
    candidate_.reset();
    state_.remove_candidate(record());
    return {};
  }
  // What went wrong with the candidate refuses it; what went wrong with the machine stops the
  // chain.
  Result<void> refuse_or_stop(std::string_view stage, std::string_view what, Error error) {
    if (stops_chain(error)) return fail_within(record().file, std::move(error));
    return refuse(stage, fmt::format("{}: {}", what, error.message()));
  }

  Result<void> write() {
    if (already_written()) return {};
    state_.progress("writing", 0, 0);
    const PassContext context{
        .original = *state_.original,
        .accepted = *state_.accepted,
        .step = step_,
        .alternative = alternative_.name,
        .sensitivity_tokens = state_.options.recipe.measure.sensitivity_tokens,
        .attempt = attempt_number_,
        .calibration = state_.measurer->calibration(),
        .pool = state_.pool,
        .progress = [this](std::int64_t done, std::int64_t total, std::string_view what) {
          state_.progress("searching", done, total, what);
        }};
    const fs::path path = state_.work(record().file);
    auto output = pass_.run(context, path);
    if (!output) return refuse_or_stop("write", "could not be written", std::move(output).error());
    record().note = std::move(output->note);
    record().expected_types.clear();
    for (const auto& [name, type] : output->expected_types) {
      record().expected_types[name] = tensor::to_string(type);
    }
    // From here on only the file counts: what the pass had in memory is gone.
    SPUD_TRY(reload());
    if (refused_) return {};
    record().bytes = candidate_->file_bytes();
    record().tensor_digest = formats::tensor_digest(*candidate_);
    record().state = AttemptState::kWritten;
    take_time();
    SPUD_TRY(state_.save());
    return refuse_repetition();
  }

  bool already_written() {
    if (record().tensor_digest.empty()) return false;
    auto file = formats::ModelFile::open(state_.work(record().file));
    if (file && formats::tensor_digest(**file) == record().tensor_digest) {
      candidate_ = *std::move(file);
      return true;
    }
    record().state = AttemptState::kWritten;  // lost or damaged: everything again
    return false;
  }

  Result<void> reload() {
    auto file = formats::ModelFile::open(state_.work(record().file));
    if (!file) {
      return refuse_or_stop("integrity", "the written file cannot be read back",
                            std::move(file).error());
    }
    candidate_ = *std::move(file);
    return {};
  }

  // A safer try that came out the same would only be measured to the same refusal.
  Result<void> refuse_repetition() {
    const auto& attempts = step_record().attempts;
    for (std::size_t i = 0; i < attempt_idx_; ++i) {
      if (attempts[i].tensor_digest == record().tensor_digest) {
        return refuse("write", fmt::format("the same weights as '{}', which was refused",
                                           attempts[i].alternative));
      }
    }
    return {};
  }

  Result<quality::TypePlan> expected_types() {
    quality::TypePlan plan;
    for (const auto& [name, type_name] : record().expected_types) {
      const auto type = tensor::find_dtype(type_name);
      if (!type) return fail(ErrorCode::kDataLoss, "the journal names a type '{}'", type_name);
      plan[name] = *type;
    }
    return plan;
  }

  Result<void> check() {
    if (record().state != AttemptState::kWritten) return {};
    SPUD_TRY(const quality::TypePlan plan, expected_types());
    SPUD_TRY(const quality::IntegrityReport report,
             quality::check_integrity(*state_.original, *candidate_, plan,
                                      [this](std::size_t done, std::size_t total) {
                                        state_.progress("checking", static_cast<std::int64_t>(done),
                                                        static_cast<std::int64_t>(total));
                                      }));
    for (const quality::TensorError& tensor : report.tensors) {
      record().worst_relative_error = std::max(record().worst_relative_error, tensor.relative_rms);
    }
    if (!report.ok()) return refuse("integrity", report.summary());
    RuleOutcome size = judge_size(step_.rules, record().bytes, state_.accepted_bytes());
    if (!size.good) return refuse("size", std::move(size.reason));
    record().state = AttemptState::kSound;
    take_time();
    return state_.save();
  }

  Result<void> measure() {
    if (record().state == AttemptState::kSound) {
      SPUD_TRY(measure_now());
      if (refused_) return {};
    }
    SPUD_TRY(const Measured measured, read_measured());
    SPUD_TRY(quality::Verdict verdict, judge_quality(measured));
    const bool good = verdict.kind == quality::VerdictKind::kPass;
    std::string sentence = verdict.sentence;
    record().perplexity = measured.measurement.perplexity_candidate();
    record().perplexity_original = measured.measurement.perplexity_reference();
    state_.journal.original_perplexity = record().perplexity_original;
    record().verdict = std::move(verdict);
    if (!good) return refuse("quality", std::move(sentence));
    return {};
  }

  Result<void> measure_now() {
    SPUD_TRY(const quality::Budget budget, budget_of(step_));
    const quality::Measurement* last =
        state_.accepted_measured ? &state_.accepted_measured->measurement : nullptr;
    auto measured = state_.measurer->measure(candidate_, budget, last);
    if (!measured) {
      return refuse_or_stop("quality", "could not be measured", std::move(measured).error());
    }
    SPUD_TRY(io::write_file_atomically(state_.measured_path(record()), to_json(*measured)));
    record().state = AttemptState::kMeasured;
    take_time();
    return state_.save();
  }

  Result<Measured> read_measured() {
    std::ifstream in(state_.measured_path(record()), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return parse_measured(std::move(text).str());
  }

  // What should have been measured is worked out here, from the files and the data set, and
  // compared with what the measurement says it is of.
  Result<quality::Verdict> judge_quality(const Measured& measured) {
    SPUD_TRY(const quality::Budget budget, budget_of(step_));
    SPUD_TRY(const auto reference_choices, choices_to_pair(budget, measured));
    // As many sequences as belong to this look: a measurement that broke off is not paired.
    const std::span<const quality::Sequence> all = state_.measurer->validation().sequences;
    if (measured.look >= budget.looks.size()) {
      return fail(ErrorCode::kInternal, "look {} of {}", measured.look + 1, budget.looks.size());
    }
    const double share = std::clamp(budget.looks[measured.look], 0.0, 1.0);
    const auto count =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(all.size()) - 1e-9));
    const auto sequences = all.first(std::min(count, all.size()));
    std::int64_t tokens = 0;
    for (const quality::Sequence& sequence : sequences) tokens += sequence.num_scored();
    return quality::decide(
        budget,
        {.candidate = &measured.measurement,
         .last_accepted =
             state_.accepted_measured ? &state_.accepted_measured->measurement : nullptr,
         .expected_sequences_digest = quality::digest_of(sequences),
         .expected_reference_digest = state_.journal.original_digest,
         .expected_candidate_digest = record().tensor_digest,
         .expected_tokenizer_digest = state_.tokenizer_digest,
         .expected_tokens = tokens,
         .reference_choices = reference_choices,
         .candidate_choices = measured.choices},
        measured.look);
  }

  // Questions that only inform are not asked of a candidate that has failed already.
  Result<std::vector<quality::ChoiceResult>> choices_to_pair(const quality::Budget& budget,
                                                             const Measured& measured) {
    if (measured.choices.empty() && !budget.mcq_drop_max) {
      return std::vector<quality::ChoiceResult>{};
    }
    return state_.measurer->reference_choices();
  }

  Result<void> time() {
    const SpeedOptions& options = state_.options.recipe.speed;
    if (!options.enabled) return {};
    if (!record().speed) {
      state_.progress("measuring speed", 0, 0);
      record().peak_memory_bytes = state_.measurer->peak_memory(candidate_).value_or(0);
      auto speed = state_.measurer->compare_speed(state_.accepted, candidate_,
                                                  {.pairs = options.pairs,
                                                   .max_pairs = options.max_pairs,
                                                   .prefill_tokens = options.prefill_tokens,
                                                   .decode_tokens = options.decode_tokens,
                                                   .prefill_limit = step_.rules.min_prefill_ratio,
                                                   .decode_limit = step_.rules.min_decode_ratio});
      if (!speed) {
        return refuse_or_stop("speed", "its speed could not be measured", std::move(speed).error());
      }
      record().speed = *speed;
      record().state = AttemptState::kTimed;  // once: a resume does not roll the dice again
      take_time();
      SPUD_TRY(state_.save());
    }
    RuleOutcome outcome = judge_speed(step_.rules, *record().speed);
    if (!outcome.good) return refuse("speed", std::move(outcome.reason));
    return {};
  }

  Result<void> accept() {
    const Accepted before = state_.journal.accepted;
    record().state = AttemptState::kDecided;
    record().decision = Decision::kAccepted;
    record().stage = "all";
    record().reason = record().verdict ? record().verdict->sentence : "";
    step_record().status = StepStatus::kAccepted;
    state_.journal.accepted = {.file = record().file,
                               .bytes = record().bytes,
                               .tensor_digest = record().tensor_digest,
                               .step = step_idx_,
                               .attempt = attempt_idx_};
    take_time();
    SPUD_TRY(state_.save());  // the one rename that moves verdict and pointer together
    SPUD_TRY(state_.reopen_accepted());
    if (!before.file.empty()) {
      state_.remove_candidate(state_.journal.steps[before.step].attempts[before.attempt]);
    }
    return {};
  }

  ChainState& state_;
  const StepOptions& step_;
  std::size_t step_idx_;
  const Pass& pass_;
  const Alternative& alternative_;
  int attempt_number_;
  std::size_t attempt_idx_;
  concurrency::SteadyTime started_;
  double seconds_before_;
  FilePtr candidate_;
  bool refused_ = false;
};

}  // namespace

Result<Decision> run_attempt(ChainState& state, std::size_t step_idx, const Pass& pass,
                             const Alternative& alternative, int attempt) {
  return CandidateRun(state, step_idx, pass, alternative, attempt).run();
}

}  // namespace spud::compress::internal
