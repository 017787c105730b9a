// SPDX-License-Identifier: Apache-2.0
// What the parts of the chain share: folder, journal, open files. Internal to compress; see
// chain.hpp for the procedure. Thread-compatible.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compress/chain.hpp"

namespace spud::compress::internal {

inline constexpr std::string_view kArtifactName = "model.gguf";

class ChainState {
 public:
  ChainState(const ChainOptions& chain_options, concurrency::ThreadPool& thread_pool,
             const concurrency::Clock& wall_clock);

  // Source, journal (a new one or the one to resume), 16-bit original, accepted artifact.
  [[nodiscard]] Result<void> open();
  // Measurer, instrument check, speed floor. Only for a chain that is not finished.
  [[nodiscard]] Result<void> prepare();

  [[nodiscard]] Result<void> save();  // the journal: atomic, synced
  std::filesystem::path work(std::string_view file) const { return work_folder / file; }
  // Where an attempt's measurement is kept.
  std::filesystem::path measured_path(const Attempt& attempt) const {
    return work(attempt.file + ".measured.json");
  }
  void remove_candidate(const Attempt& attempt) const;

  // The accepted artifact moved: opens it and its measurement.
  [[nodiscard]] Result<void> reopen_accepted();
  std::uint64_t accepted_bytes() const;

  [[nodiscard]] Result<void> check_cancelled() const;
  void note(std::string_view text) const;
  void progress(std::string_view activity, std::int64_t done, std::int64_t total,
                std::string_view text = {}) const;
  MeasurerProgress progress_sink() const;

  const ChainOptions& options;
  concurrency::ThreadPool& pool;
  const concurrency::Clock& clock;
  std::filesystem::path work_folder;
  Journal journal;
  std::unique_ptr<Measurer> measurer;
  FilePtr original;
  FilePtr accepted;  // the original while nothing is accepted
  std::optional<Measured> accepted_measured;
  std::string tokenizer_digest;
  std::string current_step;
  std::string current_alternative;

 private:
  [[nodiscard]] Result<void> open_journal(const formats::ModelFile& source);
  [[nodiscard]] Result<void> open_original(FilePtr source);
  [[nodiscard]] Result<void> check_speed_floor();
  void remove_leftovers() const;
};

// One candidate, from wherever it is to a decision that is in the journal.
[[nodiscard]] Result<Decision> run_attempt(ChainState& state, std::size_t step_idx,
                                           const Pass& pass, const Alternative& alternative,
                                           int attempt);
// Hold-out, certificate, artifact, reports.
[[nodiscard]] Result<void> finish_chain(ChainState& state);

// Errors that say something about this run, not about a candidate: they stop the chain.
bool stops_chain(const Error& error) noexcept;

}  // namespace spud::compress::internal
