// SPDX-License-Identifier: Apache-2.0
// Shrinking as a transaction. For each step of the recipe and each alternative: write the
// candidate, reload that file, check its integrity, measure it, decide. Only an accepted candidate
// moves the accepted pointer; a refused one is deleted; when nothing passes the step is declined
// and the chain goes on from the last accepted. Every transition is journalled, so a killed chain
// resumes where it was and ends with the same bytes. A candidate that cannot be written or measured
// is refused, never passed. What stops the chain as a whole (disk full, damaged original, broken
// instrument) is an Error, and the chain can be resumed.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "compress/journal.hpp"
#include "compress/measurer.hpp"
#include "compress/pass.hpp"
#include "compress/recipe.hpp"
#include "concurrency/clock.hpp"
#include "concurrency/thread_pool.hpp"

namespace spud::compress {

// What is going on, for whoever waits. `total` 0: nothing to count.
struct ChainEvent {
  enum class Kind { kProgress, kNote, kDecided, kStepDone };
  Kind kind = Kind::kProgress;
  std::string_view step;         // "int4"
  std::string_view alternative;  // "mixed"
  std::string_view activity;     // "measuring"
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::string_view text;
  const Attempt* attempt = nullptr;  // of kDecided
};

struct ChainOptions {
  std::filesystem::path source;
  std::filesystem::path folder;  // created when absent
  Recipe recipe;
  std::span<const Pass> passes = builtin_passes();
  std::string spud_version;
  MeasurerFactory make_measurer;
  std::function<void(const ChainEvent&)> on_event;
  // Looked at between candidates and while measuring; a cancelled chain resumes.
  std::function<bool()> cancelled;
};

// The journal as it stands at the end (finished), with model.gguf, certificate.json and reports in
// the folder. Errors: see above; kCancelled; kUnavailable when another chain holds the folder.
[[nodiscard]] Result<Journal> run_chain(const ChainOptions& options, concurrency::ThreadPool& pool,
                                        const concurrency::Clock& clock);

// The journal of a folder, without touching anything. kNotFound when there is none.
[[nodiscard]] Result<Journal> read_journal(const std::filesystem::path& folder);

// "SmolLM2 (F16)": commonest types of a file for people: "210 x Q4_1, 61 x F32, 1 x Q8_0".
std::string describe_types(const formats::ModelFile& file);

}  // namespace spud::compress
