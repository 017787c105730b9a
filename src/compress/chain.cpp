// SPDX-License-Identifier: Apache-2.0
#include "compress/chain.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/registry.hpp"
#include "base/sha256.hpp"
#include "compress/chain_state.hpp"
#include "io/mapped_file.hpp"

namespace spud::compress {
namespace {

using internal::ChainState;
using internal::kArtifactName;

namespace fs = std::filesystem;

Result<void> make_folders(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder / "work", code);
  if (code) {
    return fail(ErrorCode::kInvalidArgument, "the folder '{}' cannot be made: {}", folder.string(),
                code.message());
  }
  return {};
}

void announce(const ChainState& state, ChainEvent::Kind kind, const Attempt* attempt = nullptr) {
  if (!state.options.on_event) return;
  state.options.on_event({.kind = kind,
                          .step = state.current_step,
                          .alternative = state.current_alternative,
                          .attempt = attempt});
}

Result<void> end_step(ChainState& state, StepRecord& record, StepStatus status,
                      std::string reason) {
  record.status = status;
  record.reason = std::move(reason);
  SPUD_TRY(state.save());
  announce(state, ChainEvent::Kind::kStepDone);
  return {};
}

bool is_decided(const StepRecord& record, std::string_view alternative, int attempt) {
  return std::ranges::any_of(record.attempts, [&](const Attempt& a) {
    return a.alternative == alternative && a.attempt == attempt &&
           a.state == AttemptState::kDecided;
  });
}

// Until one is accepted or all are refused.
Result<bool> try_alternatives(ChainState& state, std::size_t step_idx, const Pass& pass) {
  for (const std::string& name : state.options.recipe.steps[step_idx].alternatives) {
    SPUD_TRY(const Alternative* alternative,
             find_in_registry(pass.alternatives, "alternative", name));
    state.current_alternative = name;
    for (int attempt = 0; attempt < alternative->attempts; ++attempt) {
      if (is_decided(state.journal.steps[step_idx], name, attempt)) continue;
      SPUD_TRY(const Decision decision,
               internal::run_attempt(state, step_idx, pass, *alternative, attempt));
      announce(state, ChainEvent::Kind::kDecided, &state.journal.steps[step_idx].attempts.back());
      if (decision == Decision::kAccepted) return true;
    }
  }
  return false;
}

// A validation set too small for the margin is said before the work, not found out after it.
void announce_power(ChainState& state, std::size_t step_idx) {
  const auto budget = budget_of(state.options.recipe.steps[step_idx]);
  if (!budget) return;
  for (const auto& finding : quality::check_power(*budget, state.measurer->validation())) {
    if (finding.sufficient) continue;
    state.journal.power = finding.sentence;
    state.note(finding.sentence);
  }
}

Result<void> run_step(ChainState& state, std::size_t step_idx) {
  StepRecord& record = state.journal.steps[step_idx];
  if (record.status != StepStatus::kPending) return {};
  state.current_step = record.pass;
  state.current_alternative.clear();
  SPUD_TRY(const Pass* pass, find_in_registry(state.options.passes, "pass", record.pass));
  if (std::string reason = pass->skip_reason(*state.accepted); !reason.empty()) {
    return end_step(state, record, StepStatus::kSkipped, std::move(reason));
  }
  announce_power(state, step_idx);
  SPUD_TRY(const bool accepted, try_alternatives(state, step_idx, *pass));
  if (accepted) {
    announce(state, ChainEvent::Kind::kStepDone);
    return {};
  }
  return end_step(state, record, StepStatus::kDeclined,
                  "no alternative passed; the chain goes on from the last accepted artifact");
}

// Run again after its end: nothing is left to do but to look that the artifact is still there.
Result<Journal> finished_journal(const ChainState& state) {
  std::error_code ignored;  // killed between the last entry and the clearing up
  fs::remove_all(state.work_folder, ignored);
  if (state.journal.artifact_digest.empty()) return state.journal;
  const fs::path path = state.options.folder / kArtifactName;
  const auto mapped = io::MappedFile::open(path);
  if (!mapped || sha256_hex(mapped->bytes()) != state.journal.artifact_digest) {
    return fail(ErrorCode::kDataLoss,
                "the finished artifact '{}' is gone or was changed; delete '{}' to shrink again",
                path.string(), (state.options.folder / "journal.json").string());
  }
  return state.journal;
}

Result<void> run_steps(ChainState& state) {
  SPUD_TRY(state.prepare());
  for (std::size_t i = 0; i < state.options.recipe.steps.size(); ++i) {
    SPUD_TRY(run_step(state, i));
  }
  return internal::finish_chain(state);
}

}  // namespace

Result<Journal> run_chain(const ChainOptions& options, concurrency::ThreadPool& pool,
                          const concurrency::Clock& clock) {
  SPUD_TRY(make_folders(options.folder));
  SPUD_TRY(const FolderLock lock, FolderLock::acquire(options.folder));
  const auto started = clock.now();
  ChainState state(options, pool, clock);
  if (auto opened = state.open(); !opened) {
    return fail_within("shrink", std::move(opened).error());
  }
  if (state.journal.finished) return finished_journal(state);
  const double seconds_before = state.journal.seconds;
  const auto take_time = [&] {
    state.journal.seconds =
        seconds_before + std::chrono::duration<double>(clock.now() - started).count();
  };
  auto done = run_steps(state);
  if (!done) {
    take_time();
    static_cast<void>(state.save());  // a full disk stays the error that is reported
    return fail_within("shrink", std::move(done).error());
  }
  return state.journal;
}

Result<Journal> read_journal(const fs::path& folder) {
  const fs::path path = folder / "journal.json";
  std::error_code code;
  if (!fs::exists(path, code)) {
    return fail(ErrorCode::kNotFound, "'{}' holds no chain (no journal.json)", folder.string());
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  auto journal = parse_journal(text.str());
  if (!journal) return fail_within(path.string(), std::move(journal).error());
  return journal;
}

std::string describe_types(const formats::ModelFile& file) {
  std::map<tensor::DType, std::size_t> counts;
  for (const formats::TensorInfo& tensor : file.tensors()) ++counts[tensor.dtype];
  std::vector<std::pair<std::size_t, tensor::DType>> order;
  for (const auto& [type, count] : counts) order.emplace_back(count, type);
  std::ranges::sort(order, std::ranges::greater{});
  std::string text;
  for (const auto& [count, type] : order) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, tensor::to_string(type));
  }
  return text;
}

}  // namespace spud::compress
