// SPDX-License-Identifier: Apache-2.0
#include "compress/engine_measurer.hpp"

#include <malloc.h>

#include <fstream>

#include "compress/calibration.hpp"
#include "compress/self_data.hpp"
#include "compress/speed_runner.hpp"
#include "engine/scorer.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::compress {
namespace {

constexpr std::size_t kInstrumentSequences = 2;
constexpr std::int64_t kMemoryPrompt = 64;

// The first sequences that hold at most `max_tokens` scored tokens, at least one.
quality::SequenceSet cut(quality::SequenceSet set, std::int64_t max_tokens) {
  std::int64_t tokens = 0;
  std::size_t count = 0;
  for (const quality::Sequence& sequence : set.sequences) {
    tokens += sequence.num_scored();
    if (count > 0 && tokens > max_tokens) break;
    ++count;
  }
  set.sequences.resize(count);
  set.digest = quality::digest_of(set.sequences);
  return set;
}

DataUse describe(std::string use, const quality::SequenceSet& set) {
  return {.use = std::move(use),
          .name = set.source,
          .digest = set.digest,
          .sequences = static_cast<std::int64_t>(set.sequences.size()),
          .tokens = set.num_scored()};
}

// A line "VmRSS:   123 kB" of /proc/self/status, in bytes; 0 when there is none.
std::uint64_t process_memory(std::string_view key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key))
      return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

struct Data {
  quality::Dataset dataset;
  quality::SequenceSet calibration, validation, holdout;
};

Result<quality::Dataset> load_dataset(const MeasureOptions& options, const SelfDataInputs& self) {
  if (options.data == "builtin") return quality::Dataset::builtin();
  if (options.data == "self") return sample_self_data(options, self);
  return quality::Dataset::load(options.data);
}

Result<Data> load_data(const MeasureOptions& options, const SelfDataInputs& self) {
  SPUD_TRY(auto dataset, load_dataset(options, self));
  const tokenizer::Tokenizer& tokenizer = *self.tokenizer;
  const quality::DocumentOptions documents{.max_tokens = options.sequence_tokens};
  const auto sequences = [&](quality::Split split, std::int64_t max_tokens) {
    auto set = quality::make_document_sequences(dataset, split, tokenizer, documents);
    if (set) *set = cut(std::move(*set), max_tokens);
    return set;
  };
  SPUD_TRY(auto calibration, sequences(quality::Split::kCalibration, options.calibration_tokens));
  SPUD_TRY(auto validation, sequences(quality::Split::kValidation, options.validation_tokens));
  SPUD_TRY(auto holdout, sequences(quality::Split::kHoldout, options.holdout_tokens));
  return Data{std::move(dataset), std::move(calibration), std::move(validation),
              std::move(holdout)};
}

struct Loaded {
  std::shared_ptr<const model::Model> model;
  std::unique_ptr<engine::Scorer> scorer;
};

class EngineMeasurer final : public Measurer {
 public:
  static Result<std::unique_ptr<Measurer>> create(const EngineMeasurerOptions& options,
                                                  const MeasurerContext& context) {
    SPUD_TRY(std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
             tokenizer::Tokenizer::create(context.original->metadata()));
    SPUD_TRY(auto model, model::Model::load(context.original, context.pool, options.load));
    if (context.recipe.measure.data == "self") context.progress(0, 0, "sampling text");
    SPUD_TRY(Data data, load_data(context.recipe.measure,
                                  {.model = model,
                                   .tokenizer = tokenizer,
                                   .model_digest = formats::tensor_digest(*context.original),
                                   .folder = context.folder,
                                   .threads = context.pool.num_threads()}));
    SPUD_TRY(auto scorer, engine::make_scorer(model, context.pool));
    return std::unique_ptr<Measurer>(
        new EngineMeasurer(options, context, std::move(tokenizer), std::move(data),
                           Loaded{std::move(model), std::move(scorer)}));
  }

  const std::vector<DataUse>& data() const override { return uses_; }
  const quality::SequenceSet& validation() const override { return data_.validation; }
  const quality::SequenceSet& holdout() const override { return data_.holdout; }
  Calibration& calibration() override { return calibration_; }
  std::string environment() const override {
    return fmt::format("{} kernels, {} thread{}",
                       kernels::to_string(kernels::select_kernels(options_.load.isa_limit).isa),
                       pool_.num_threads(), pool_.num_threads() == 1 ? "" : "s");
  }

  Result<std::vector<quality::ChoiceResult>> reference_choices() override {
    const auto questions = this->questions();
    if (reference_choices_.empty() && !questions.empty()) {
      SPUD_TRY(reference_choices_,
               quality::answer_choices(questions, *tokenizer_, *original_.scorer,
                                       callback("original: questions")));
    }
    return reference_choices_;
  }

  Result<void> check_instrument() override {
    SPUD_TRY(const Loaded again, load(original_file_));
    return quality::check_instrument(data_.validation, kInstrumentSequences, reference_,
                                     *again.scorer, pool_);
  }

  Result<Measured> measure(FilePtr candidate, const quality::Budget& budget,
                           const quality::Measurement* last_accepted) override;
  Result<quality::Measurement> measure_holdout(FilePtr artifact) override;
  Result<SpeedComparison> compare_speed(FilePtr baseline, FilePtr candidate,
                                        const SpeedPlan& plan) override;
  Result<std::uint64_t> peak_memory(FilePtr candidate) override;

 private:
  EngineMeasurer(const EngineMeasurerOptions& options, const MeasurerContext& context,
                 std::shared_ptr<const tokenizer::Tokenizer> tokenizer, Data data, Loaded original)
      : options_(options),
        recipe_(context.recipe),
        pool_(context.pool),
        progress_(context.progress),
        tokenizer_(std::move(tokenizer)),
        data_(std::move(data)),
        original_file_(context.original),
        original_(std::move(original)),
        reference_(*original_.scorer, options.logits_limit_bytes),
        calibration_({.original = original_file_,
                      .scorer = original_.scorer.get(),
                      .load = options.load,
                      .text = data_.calibration,
                      .importance_tokens = recipe_.measure.calibration_tokens,
                      .logits_limit_bytes = options.logits_limit_bytes / 4,
                      .blocks_limit_bytes = options.blocks_limit_bytes,
                      .folder = context.folder,
                      .pool = &pool_,
                      .progress = progress_}),
        original_digest_(formats::tensor_digest(*original_file_)),
        uses_{describe("calibration", data_.calibration), describe("validation", data_.validation),
              describe("hold-out", data_.holdout)} {}

  Result<Loaded> load(FilePtr file) const {
    Loaded loaded;
    SPUD_TRY(loaded.model, model::Model::load(std::move(file), pool_, options_.load));
    SPUD_TRY(loaded.scorer, engine::make_scorer(loaded.model, pool_));
    return loaded;
  }
  quality::MeasureCallback callback(std::string what) const {
    return [this, what = std::move(what)](const quality::MeasureProgress& p) {
      return progress_(p.sequences_done, p.sequences_total, what);
    };
  }
  std::vector<const quality::Question*> questions() const {
    auto all = data_.dataset.questions(quality::Split::kValidation);
    const auto limit = static_cast<std::size_t>(recipe_.measure.questions);
    if (all.size() > limit) all.resize(limit);
    return all;
  }
  std::span<const model::TokenId> some_text() const {
    return data_.calibration.sequences.front().tokens;
  }

  EngineMeasurerOptions options_;
  const Recipe& recipe_;
  concurrency::ThreadPool& pool_;
  MeasurerProgress progress_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  Data data_;
  FilePtr original_file_;
  Loaded original_;
  quality::ReferenceLogits reference_;
  EngineCalibration calibration_;
  std::string original_digest_;
  std::vector<DataUse> uses_;
  std::vector<quality::ChoiceResult> reference_choices_;
};

Result<Measured> EngineMeasurer::measure(FilePtr candidate, const quality::Budget& budget,
                                         const quality::Measurement* last_accepted) {
  SPUD_TRY(const Loaded loaded, load(candidate));
  Measured measured;
  quality::GateInputs inputs{
      .validation = &data_.validation,
      .original = &reference_,
      .candidate = loaded.scorer.get(),
      .pool = &pool_,
      .last_accepted = last_accepted,
      .original_digest = original_digest_,
      .candidate_digest = formats::tensor_digest(*candidate),
      .tokenizer_digest = formats::tokenizer_digest(original_file_->metadata()),
      .candidate_tokenizer_digest = formats::tokenizer_digest(candidate->metadata()),
      .on_progress = callback("measuring")};
  const auto ask = [&]() -> Result<void> {
    SPUD_TRY(measured.choices, quality::answer_choices(questions(), *tokenizer_, *loaded.scorer,
                                                       callback("questions")));
    return {};
  };
  std::vector<quality::ChoiceResult> reference;
  if (budget.mcq_drop_max) {  // the answers decide: they must be there before the gate
    SPUD_TRY(reference, reference_choices());
    SPUD_TRY(ask());
    inputs.reference_choices = reference;
    inputs.candidate_choices = measured.choices;
  }
  SPUD_TRY(quality::GateResult gate, quality::run_gate(budget, inputs));
  const bool broke_off = gate.verdict.findings.empty();
  if (broke_off) return fail(ErrorCode::kDataLoss, "{}", gate.verdict.sentence);
  measured.measurement = std::move(gate.measurement);
  measured.look = gate.verdict.look;
  if (recipe_.measure.questions > 0 && !budget.mcq_drop_max &&
      gate.verdict.kind == quality::VerdictKind::kPass) {
    SPUD_TRY(ask());
  }
  return measured;
}

Result<quality::Measurement> EngineMeasurer::measure_holdout(FilePtr artifact) {
  SPUD_TRY(const Loaded loaded, load(artifact));
  quality::ReferenceLogits reference(*original_.scorer, 0);  // used once: nothing to keep
  quality::Measurement m;
  m.reference_digest = original_digest_;
  m.candidate_digest = formats::tensor_digest(*artifact);
  m.tokenizer_digest = formats::tokenizer_digest(artifact->metadata());
  SPUD_TRY(quality::measure(data_.holdout, data_.holdout.sequences.size(), reference,
                            *loaded.scorer, pool_, m, callback("hold-out")));
  return m;
}

Result<SpeedComparison> EngineMeasurer::compare_speed(FilePtr baseline, FilePtr candidate,
                                                      const SpeedPlan& plan) {
  SPUD_TRY(const Loaded a, load(std::move(baseline)));
  SPUD_TRY(const Loaded b, load(std::move(candidate)));
  SPUD_TRY(SpeedRunner run_a, SpeedRunner::create(a.model, pool_, some_text(), plan));
  SPUD_TRY(SpeedRunner run_b, SpeedRunner::create(b.model, pool_, some_text(), plan));
  return compress::compare_speed(plan, [&] { return run_a.run(); }, [&] { return run_b.run(); });
}

// What the process grows by: weights in their packed form, scratch memory and a small KV cache. The
// file's own pages are shared with the page cache and left out by reading anonymous memory only.
Result<std::uint64_t> EngineMeasurer::peak_memory(FilePtr candidate) {
  malloc_trim(0);
  const std::uint64_t before = process_memory("RssAnon:");
  SPUD_TRY(const Loaded loaded, load(std::move(candidate)));
  const SpeedPlan plan{.prefill_tokens = kMemoryPrompt, .decode_tokens = 1};
  SPUD_TRY(SpeedRunner runner, SpeedRunner::create(loaded.model, pool_, some_text(), plan));
  SPUD_TRY(const SpeedSample sample, runner.run());
  static_cast<void>(sample);
  const std::uint64_t after = process_memory("RssAnon:");
  return after > before ? after - before : 0;
}

}  // namespace

MeasurerFactory make_engine_measurer(EngineMeasurerOptions options) {
  return [options](const MeasurerContext& context) {
    return EngineMeasurer::create(options, context);
  };
}

}  // namespace spud::compress
