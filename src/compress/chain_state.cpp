// SPDX-License-Identifier: Apache-2.0
#include "compress/chain_state.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/sha256.hpp"
#include "compress/decision.hpp"
#include "compress/passes/fp16.hpp"
#include "config/config.hpp"
#include "io/atomic_file.hpp"

namespace spud::compress::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOriginalFile = "original.gguf";
constexpr int kFloorTries = 3;
constexpr double kFloorTolerance = 0.03;

Result<std::string> read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail(ErrorCode::kNotFound, "'{}' cannot be read", path.string());
  return std::move(text).str();
}

bool has_quantised_tensor(const formats::ModelFile& file) {
  return std::ranges::any_of(file.tensors(), [](const formats::TensorInfo& tensor) {
    return tensor::traits(tensor.dtype).quantised;
  });
}

Result<void> refuse_other(std::string_view what, std::string_view recorded, std::string_view now,
                          const fs::path& folder) {
  if (recorded == now) return {};
  return fail(ErrorCode::kInvalidArgument,
              "'{}' holds a chain of another {}; choose another --out or delete the folder",
              folder.string(), what);
}

}  // namespace

bool stops_chain(const Error& error) noexcept {
  return error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kResourceExhausted;
}

ChainState::ChainState(const ChainOptions& chain_options, concurrency::ThreadPool& thread_pool,
                       const concurrency::Clock& wall_clock)
    : options(chain_options),
      pool(thread_pool),
      clock(wall_clock),
      work_folder(chain_options.folder / "work") {}

Result<void> ChainState::open() {
  SPUD_TRY(FilePtr source, formats::ModelFile::open(options.source));
  SPUD_TRY(open_journal(*source));
  if (journal.finished) return {};
  remove_leftovers();
  SPUD_TRY(open_original(std::move(source)));
  tokenizer_digest = formats::tokenizer_digest(original->metadata());
  return reopen_accepted();
}

Result<void> ChainState::open_journal(const formats::ModelFile& source) {
  Journal fresh{.source = options.source.string(),
                .source_digest = formats::tensor_digest(source),
                .recipe_name = options.recipe.name,
                .recipe_digest = sha256_hex(config::to_yaml(options.recipe)),
                .spud_version = options.spud_version,
                .source_types = describe_types(source),
                .dequantised = has_quantised_tensor(source)};
  const std::string* name = source.metadata().find_string("general.name");
  fresh.model_name = name != nullptr ? *name : options.source.filename().string();
  for (const StepOptions& step : options.recipe.steps) fresh.steps.push_back({.pass = step.pass});

  auto found = read_journal(options.folder);
  if (!found && found.error().code() == ErrorCode::kNotFound) {
    journal = std::move(fresh);
    return {};
  }
  if (!found) return std::unexpected(std::move(found).error());
  const fs::path& folder = options.folder;
  SPUD_TRY(refuse_other("model", found->source_digest, fresh.source_digest, folder));
  SPUD_TRY(refuse_other("recipe", found->recipe_digest, fresh.recipe_digest, folder));
  SPUD_TRY(refuse_other("version of spud", found->spud_version, fresh.spud_version, folder));
  journal = *std::move(found);
  return {};
}

// A model that arrives quantised is compared with its own dequantised weights in 16 bit; any other
// is its own original.
Result<void> ChainState::open_original(FilePtr source) {
  if (!journal.dequantised) {
    original = std::move(source);
  } else {
    const fs::path path = work(kOriginalFile);
    if (journal.original_digest.empty() || !fs::exists(path)) {
      progress("making the 16-bit original", 0, 0);
      SPUD_TRY(const TensorPlan plan, fp16::sixteen_bit_plan(*source, pool));
      SPUD_TRY(write_plan(*source, plan, {}, pool, path));
    }
    SPUD_TRY(original, formats::ModelFile::open(path));
  }
  const std::string digest = formats::tensor_digest(*original);
  if (!journal.original_digest.empty() && journal.original_digest != digest) {
    return fail(ErrorCode::kDataLoss,
                "the 16-bit original is not the one this chain started from; delete '{}' and start "
                "again",
                options.folder.string());
  }
  journal.original_file = journal.dequantised ? std::string(kOriginalFile) : "";
  journal.original_digest = digest;
  journal.original_bytes = original->file_bytes();
  return save();
}

Result<void> ChainState::reopen_accepted() {
  accepted_measured.reset();
  if (journal.accepted.file.empty()) {
    accepted = original;
    return {};
  }
  const Attempt& attempt =
      journal.steps.at(journal.accepted.step).attempts.at(journal.accepted.attempt);
  SPUD_TRY(accepted, formats::ModelFile::open(work(attempt.file)));
  if (formats::tensor_digest(*accepted) != journal.accepted.tensor_digest) {
    return fail(ErrorCode::kDataLoss,
                "the accepted artifact '{}' was changed from outside; delete '{}' and start again",
                work(attempt.file).string(), options.folder.string());
  }
  SPUD_TRY(const std::string text, read_text(measured_path(attempt)));
  SPUD_TRY(accepted_measured, parse_measured(text));
  return {};
}

std::uint64_t ChainState::accepted_bytes() const {
  return journal.accepted.file.empty() ? journal.original_bytes : journal.accepted.bytes;
}

Result<void> ChainState::prepare() {
  SPUD_TRY(measurer, options.make_measurer({.original = original,
                                            .recipe = options.recipe,
                                            .folder = work_folder,
                                            .pool = pool,
                                            .progress = progress_sink()}));
  if (!journal.data.empty()) {
    for (std::size_t i = 0; i < journal.data.size(); ++i) {
      const bool same =
          i < measurer->data().size() && measurer->data()[i].digest == journal.data[i].digest;
      SPUD_TRY(refuse_other("data set", same ? "" : "other", "", options.folder));
    }
  }
  journal.data = measurer->data();
  journal.environment = measurer->environment();
  if (!journal.instrument_checked) {
    progress("checking the instrument", 0, 0);
    SPUD_TRY(measurer->check_instrument());
    journal.instrument_checked = true;
    auto memory = measurer->peak_memory(original);
    journal.original_memory_bytes = memory.value_or(0);
  }
  SPUD_TRY(check_speed_floor());
  return save();
}

Result<void> ChainState::check_speed_floor() {
  if (!options.recipe.speed.enabled || journal.speed_floor) return {};
  const SpeedOptions& speed = options.recipe.speed;
  RuleOutcome outcome;
  for (int i = 0; i < kFloorTries; ++i) {
    SPUD_TRY(check_cancelled());
    progress("timing the original against itself", 0, 0);
    SPUD_TRY(const SpeedComparison floor,
             measurer->compare_speed(original, original,
                                     {.pairs = speed.pairs,
                                      .max_pairs = speed.pairs,
                                      .prefill_tokens = speed.prefill_tokens,
                                      .decode_tokens = speed.decode_tokens}));
    outcome = judge_floor(floor, kFloorTolerance);
    if (outcome.good) {
      journal.speed_floor = floor;
      return {};
    }
  }
  return fail(ErrorCode::kUnavailable,
              "{} (tried {} times); run again when it is quieter, or set speed.enabled: false in "
              "the recipe",
              outcome.reason, kFloorTries);
}

Result<void> ChainState::save() {
  return io::write_file_atomically(options.folder / "journal.json", to_json(journal));
}

void ChainState::remove_candidate(const Attempt& attempt) const {
  std::error_code ignored;  // a file that stays behind is removed by the next remove_leftovers()
  fs::remove(work(attempt.file), ignored);
  fs::remove(measured_path(attempt), ignored);
}

// Files that a killed run wrote and the journal does not know.
void ChainState::remove_leftovers() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(options.folder, ignored)) {
    if (io::is_temporary_name(entry.path().filename().string())) fs::remove(entry, ignored);
  }
  for (const auto& entry : fs::directory_iterator(work_folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool undecided = std::ranges::any_of(journal.steps, [&](const StepRecord& step) {
      return std::ranges::any_of(step.attempts, [&](const Attempt& attempt) {
        return name.starts_with(attempt.file) &&
               (attempt.state != AttemptState::kDecided || attempt.file == journal.accepted.file);
      });
    });
    if (io::is_temporary_name(name) || (name.starts_with("step-") && !undecided)) {
      fs::remove(entry, ignored);
    }
  }
}

Result<void> ChainState::check_cancelled() const {
  if (options.cancelled && options.cancelled()) {
    return fail(ErrorCode::kCancelled, "stopped; the same command goes on from here");
  }
  return {};
}

void ChainState::note(std::string_view text) const {
  if (!options.on_event) return;
  options.on_event({.kind = ChainEvent::Kind::kNote,
                    .step = current_step,
                    .alternative = current_alternative,
                    .text = text});
}

void ChainState::progress(std::string_view activity, std::int64_t done, std::int64_t total,
                          std::string_view text) const {
  if (!options.on_event) return;
  options.on_event({.kind = ChainEvent::Kind::kProgress,
                    .step = current_step,
                    .alternative = current_alternative,
                    .activity = activity,
                    .done = done,
                    .total = total,
                    .text = text});
}

MeasurerProgress ChainState::progress_sink() const {
  return [this](std::int64_t done, std::int64_t total, std::string_view what) {
    progress(what, done, total);
    return !options.cancelled || !options.cancelled();
  };
}

}  // namespace spud::compress::internal
