// SPDX-License-Identifier: Apache-2.0
// What a chain has done, in one JSON file that is replaced atomically at every transition. The
// pointer to the accepted artifact lives in the same file, so a verdict and its consequence are one
// rename: there is no instant at which they disagree.
// Times and speeds are kept here and in the report, never in the artifact.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "compress/measurer.hpp"
#include "quality/gate.hpp"

namespace spud::compress {

// How far a candidate got. Each state is journalled after its work is safe on disk.
enum class AttemptState { kWritten, kSound, kMeasured, kTimed, kDecided };

enum class Decision { kAccepted, kRefused };

struct Attempt {
  std::string alternative;
  int attempt = 0;
  AttemptState state = AttemptState::kWritten;
  std::string file;  // in the work folder
  std::uint64_t bytes = 0;
  std::string tensor_digest;
  std::map<std::string, std::string, std::less<>> expected_types;  // tensor -> "Q8_0"
  std::string note;
  double worst_relative_error = 0;  // of any tensor, against the original
  std::optional<quality::Verdict> verdict;
  double perplexity = 0;
  double perplexity_original = 0;
  std::optional<SpeedComparison> speed;
  std::uint64_t peak_memory_bytes = 0;
  Decision decision = Decision::kRefused;
  std::string stage;   // what decided: "write", "integrity", "size", "quality", "speed", "all"
  std::string reason;  // one sentence
  double seconds = 0;  // all work on this candidate
};

enum class StepStatus { kPending, kAccepted, kDeclined, kSkipped };

struct StepRecord {
  std::string pass;
  StepStatus status = StepStatus::kPending;
  std::string reason;  // of a skipped or declined step
  std::vector<Attempt> attempts;
};

struct Accepted {
  std::string file;  // in the work folder; empty: the original
  std::uint64_t bytes = 0;
  std::string tensor_digest;
  std::size_t step = 0;     // index into steps, when file is not empty
  std::size_t attempt = 0;  // index into that step's attempts
};

struct Journal {
  // Identity: a resume with any other value is refused.
  std::string source;  // path, for people
  std::string source_digest;
  std::string recipe_name;
  std::string recipe_digest;
  std::string spud_version;

  std::string model_name;
  std::string source_types;   // "210 x Q4_1, 61 x F32, 1 x Q8_0"
  bool dequantised = false;   // the original was made from a quantised source
  std::string original_file;  // in the work folder, or empty: the source itself
  std::string original_digest;
  std::uint64_t original_bytes = 0;
  std::vector<DataUse> data;
  std::string environment;
  std::string power;  // can the validation set decide: one sentence, "" = yes
  bool instrument_checked = false;
  std::optional<SpeedComparison> speed_floor;  // original against itself
  double original_perplexity = 0;
  std::uint64_t original_memory_bytes = 0;

  std::vector<StepRecord> steps;
  Accepted accepted;
  std::optional<quality::Verdict> holdout;
  double holdout_perplexity = 0;
  double holdout_perplexity_original = 0;
  std::string artifact_digest;  // SHA-256 of model.gguf, set when finished
  bool finished = false;
  double seconds = 0;  // over all runs
};

std::string to_json(const Journal& journal);
[[nodiscard]] Result<Journal> parse_journal(std::string_view json);

std::string_view to_string(AttemptState state) noexcept;
std::string_view to_string(StepStatus status) noexcept;
std::string_view to_string(Decision decision) noexcept;

// Measurements are large: each has its own file beside its candidate.
std::string to_json(const Measured& measured);
[[nodiscard]] Result<Measured> parse_measured(std::string_view json);

// Nobody else works in `folder` while this lives (flock on folder/lock; freed when a process dies).
class FolderLock {
 public:
  [[nodiscard]] static Result<FolderLock> acquire(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) noexcept : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace spud::compress
