// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/eval.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "concurrency/clock.hpp"
#include "concurrency/cpu_budget.hpp"
#include "console/progress.hpp"
#include "engine/model_engine.hpp"
#include "engine/scorer.hpp"
#include "io/mapped_file.hpp"
#include "kvcache/kv_type.hpp"
#include "quality/dataset.hpp"
#include "quality/engine_sampler.hpp"
#include "quality/measurement.hpp"
#include "spud/commands/eval_report.hpp"
#include "spud/isa_option.hpp"

namespace spud::app {
namespace {

struct Arguments {
  std::string model;
  std::string against;
  std::string kv_type = kernels::to_string(kernels::kDefaultKvType);
  std::string against_kv_type;  // "" = as kv_type
  std::string compare_kv_type;  // "" = no second measurement
  std::string data = "builtin";
  std::string split = "validation";
  std::int64_t window = -1;  // -1 = 512 for plain text, 0 for the rest
  std::int64_t max_windows = 0;
  std::uint64_t seed = 20261130;  // of `self`
  bool choices = false;
};

// `self`: half of the samples are the validation split. About 3,000 predictions: enough to tell
// eight from four bits, in a minute on two cores.
constexpr std::int64_t kSelfSamples = 32;
constexpr std::int64_t kSelfTokens = 192;

// A model ready to be scored. The pool must outlive it.
struct Subject {
  std::shared_ptr<const formats::ModelFile> file;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::shared_ptr<const model::Model> model;
  std::unique_ptr<engine::Scorer> scorer;
};

Result<Subject> open_subject(const std::string& path, kernels::Isa isa, const std::string& kv_type,
                             concurrency::ThreadPool& pool) {
  Subject subject;
  SPUD_TRY(subject.file, formats::ModelFile::open(path));
  SPUD_TRY(subject.tokenizer, tokenizer::Tokenizer::create(subject.file->metadata()));
  SPUD_TRY(subject.model, model::Model::load(subject.file, pool, {.isa_limit = isa}));
  SPUD_TRY(const kernels::KvType type, kvcache::parse_kv_type(kv_type));
  SPUD_TRY(subject.scorer, engine::make_scorer(subject.model, pool, type));
  return subject;
}

Result<quality::Split> parse_split(std::string_view name) {
  for (const auto split :
       {quality::Split::kCalibration, quality::Split::kValidation, quality::Split::kHoldout}) {
    if (name == quality::to_string(split)) return split;
  }
  return fail(ErrorCode::kInvalidArgument,
              "split '{}' is unknown; use calibration, validation or holdout", name);
}

bool is_plain_text(const Arguments& arguments) {
  const auto extension = std::filesystem::path(arguments.data).extension();
  return arguments.data != "builtin" && arguments.data != "self" && extension != ".jsonl" &&
         extension != ".json";
}

std::string base_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// One evaluation: holds what every part of it needs.
class Evaluation {
 public:
  Evaluation(const Arguments& arguments, const GlobalOptions& globals)
      : arguments_(arguments),
        globals_(globals),
        terminal_(console::detect_terminal()),
        pool_(
            concurrency::choose_threads(globals.threads, concurrency::read_cpu_budget()).threads) {}

  Result<int> run();

 private:
  Result<void> open_models();
  Result<void> load_data();
  Result<quality::Dataset> sample_from_reference();
  Result<std::string> window_text(quality::Split split) const;
  Result<quality::SequenceSet> make_sequences(std::int64_t window) const;
  Result<void> measure_text(const quality::SequenceSet& set);
  Result<void> measure_other_kv_type(const quality::SequenceSet& set);
  Result<void> measure_choices();
  console::Progress make_progress(std::string title, std::string unit, std::int64_t total) const {
    return console::Progress(terminal_, clock_, console::write_stderr,
                             {.title = std::move(title),
                              .unit = std::move(unit),
                              .total = total,
                              .quiet = globals_.quiet});
  }

  const Arguments& arguments_;
  const GlobalOptions& globals_;
  console::Terminal terminal_;
  concurrency::RealClock clock_;
  concurrency::ThreadPool pool_;
  Subject model_;
  std::optional<Subject> reference_;
  std::optional<quality::Dataset> dataset_;  // nothing for plain text in windows
  EvalReport report_;
};

Result<void> Evaluation::open_models() {
  SPUD_TRY(const auto isa, isa_of(globals_));
  SPUD_TRY(model_, open_subject(arguments_.model, isa, arguments_.kv_type, pool_));
  report_.model = base_name(arguments_.model);
  if (arguments_.against.empty()) return {};
  const std::string& kv_type =
      arguments_.against_kv_type.empty() ? arguments_.kv_type : arguments_.against_kv_type;
  SPUD_TRY(auto reference, open_subject(arguments_.against, isa, kv_type, pool_));
  report_.reference = base_name(arguments_.against);
  if (formats::tokenizer_digest(reference.file->metadata()) !=
      formats::tokenizer_digest(model_.file->metadata())) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' and '{}' have different tokenizers; their predictions can not be compared",
                report_.model, report_.reference);
  }
  reference_ = std::move(reference);
  return {};
}

// Text by the reference (or the model itself when it is alone), through the serving engine.
Result<quality::Dataset> Evaluation::sample_from_reference() {
  const Subject& subject = reference_ ? *reference_ : model_;
  SPUD_TRY(const auto engine,
           engine::make_engine(
               {.model = subject.model, .tokenizer = subject.tokenizer, .clock = &clock_},
               {.context = std::min(kSelfTokens, subject.model->hyper_parameters().context_length),
                .threads = pool_.num_threads()}));
  auto progress = make_progress("sampling", "sequences", 0);
  progress.update(0);
  quality::EngineSampler sampler(*engine);
  return quality::sample_dataset(sampler, kSelfSamples, kSelfTokens, arguments_.seed);
}

Result<void> Evaluation::load_data() {
  if (arguments_.data == "builtin") {
    SPUD_TRY(dataset_, quality::Dataset::builtin());
  } else if (arguments_.data == "self") {
    SPUD_TRY(dataset_, sample_from_reference());
  } else if (!is_plain_text(arguments_) || arguments_.window == 0) {
    SPUD_TRY(dataset_, quality::Dataset::load(arguments_.data));
  }
  return {};
}

// The text for windows: a plain file as it is, otherwise the split's documents one after another.
Result<std::string> Evaluation::window_text(quality::Split split) const {
  if (!dataset_) {
    SPUD_TRY(const auto mapped, io::MappedFile::open(arguments_.data));
    return std::string(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  }
  std::string text;
  for (const quality::Document* document : dataset_->documents(split)) {
    text += document->text + "\n";
  }
  return text;
}

Result<quality::SequenceSet> Evaluation::make_sequences(std::int64_t window) const {
  SPUD_TRY(const auto split, parse_split(arguments_.split));
  if (window > 0) {
    SPUD_TRY(const auto text, window_text(split));
    return quality::make_windows(text, arguments_.data, *model_.tokenizer,
                                 {.window = window, .max_windows = arguments_.max_windows});
  }
  SPUD_TRY(auto set, quality::make_document_sequences(*dataset_, split, *model_.tokenizer));
  const auto limit = static_cast<std::size_t>(arguments_.max_windows);
  if (limit > 0 && set.sequences.size() > limit) {
    set.sequences.resize(limit);
    set.digest = quality::digest_of(set.sequences);
  }
  return set;
}

Result<void> Evaluation::measure_text(const quality::SequenceSet& set) {
  auto progress = make_progress("measuring", report_.unit, std::ssize(set.sequences));
  quality::Measurement& m = report_.measurement;
  const auto show = [&](const quality::MeasureProgress& at) {
    progress.update(at.sequences_done, fmt::format("perplexity {:.3f}", m.perplexity_candidate()));
    return true;
  };
  if (reference_) {
    quality::ReferenceLogits logits(*reference_->scorer, 0);
    SPUD_TRY(quality::measure(set, set.sequences.size(), logits, *model_.scorer, pool_, m, show));
  } else {
    SPUD_TRY(quality::measure_alone(set, *model_.scorer, pool_, m, show));
  }
  progress.finish(fmt::format("perplexity {:.3f}", m.perplexity_candidate()));
  return {};
}

Result<void> Evaluation::measure_other_kv_type(const quality::SequenceSet& set) {
  SPUD_TRY(const kernels::KvType type, kvcache::parse_kv_type(arguments_.compare_kv_type));
  SPUD_TRY(const auto scorer, engine::make_scorer(model_.model, pool_, type));
  auto progress = make_progress("measuring with " + arguments_.compare_kv_type, report_.unit,
                                std::ssize(set.sequences));
  quality::ReferenceLogits logits(*reference_->scorer, 0);
  SPUD_TRY(quality::measure(set, set.sequences.size(), logits, *scorer, pool_, report_.compared,
                            [&](const quality::MeasureProgress& at) {
                              progress.update(at.sequences_done);
                              return true;
                            }));
  report_.compared_kv_type = arguments_.compare_kv_type;
  progress.finish();
  return {};
}

Result<void> Evaluation::measure_choices() {
  SPUD_TRY(const auto split, parse_split(arguments_.split));
  std::vector<const quality::Question*> questions;
  if (dataset_) questions = dataset_->questions(split);
  std::optional<quality::Dataset> builtin;
  if (questions.empty()) {  // the text came from elsewhere: ask the built-in questions
    SPUD_TRY(builtin, quality::Dataset::builtin());
    questions = builtin->questions(split);
  }
  if (questions.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the {} split has no questions", arguments_.split);
  }
  const auto ask = [&](Subject& subject,
                       const std::string& name) -> Result<std::vector<quality::ChoiceResult>> {
    auto progress = make_progress("asking " + name, "questions", std::ssize(questions));
    const auto show = [&](const quality::MeasureProgress& at) {
      progress.update(at.sequences_done);
      return true;
    };
    return quality::answer_choices(questions, *subject.tokenizer, *subject.scorer, show);
  };
  SPUD_TRY(report_.choices, ask(model_, report_.model));
  if (reference_) {
    SPUD_TRY(report_.reference_choices, ask(*reference_, report_.reference));
  }
  return {};
}

Result<int> Evaluation::run() {
  if (arguments_.data == "self" && arguments_.window > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "sampled text has no windows: it is measured sequence by sequence; leave --window "
                "out");
  }
  if (!arguments_.compare_kv_type.empty() && arguments_.against.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "--compare-kv-type compares divergences from a reference: name one with --against");
  }
  SPUD_TRY(open_models());
  SPUD_TRY(load_data());
  const std::int64_t window =
      arguments_.window >= 0 ? arguments_.window : (is_plain_text(arguments_) ? 512 : 0);
  report_.unit = window > 0 ? "windows" : "documents";
  SPUD_TRY(const auto set, make_sequences(window));
  report_.data = set.source;
  report_.data_digest = set.digest;
  const auto begin = clock_.now();
  SPUD_TRY(measure_text(set));
  if (!arguments_.compare_kv_type.empty()) {
    SPUD_TRY(measure_other_kv_type(set));
  }
  if (arguments_.choices) {
    SPUD_TRY(measure_choices());
  }
  report_.seconds = std::chrono::duration<double>(clock_.now() - begin).count();
  std::fputs((globals_.json ? to_json_text(report_) : to_table_text(report_)).c_str(), stdout);
  return kExitOk;
}

}  // namespace

CommandAction define_eval(CLI::App& sub, const GlobalOptions& globals) {
  auto arguments = std::make_shared<Arguments>();
  sub.add_option("MODEL", arguments->model, "GGUF file, safetensors file or Hugging Face folder")
      ->required();
  sub.add_option("--against", arguments->against, "Reference model: adds divergence and agreement");
  sub.add_option("--kv-type", arguments->kv_type, "Type of stored keys and values: int8 or f16")
      ->capture_default_str();
  sub.add_option("--against-kv-type", arguments->against_kv_type,
                 "The same for the reference, e.g. f16 to see what int8 costs [as --kv-type]");
  sub.add_option("--compare-kv-type", arguments->compare_kv_type,
                 "Measure with this type too and print the paired change of the mean divergence");
  sub.add_option("--data", arguments->data,
                 "builtin, self (sampled from the reference), or a file: plain text, or JSONL with "
                 "\"text\" or "
                 "\"question\"/\"answer\"")
      ->capture_default_str();
  sub.add_option("--split", arguments->split, "calibration, validation or holdout (documents only)")
      ->capture_default_str();
  sub.add_option("--window", arguments->window,
                 "Cut the text into windows of this many tokens, scored on the second half; 0 = "
                 "document by document [512 for plain text, else 0]")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20));
  sub.add_option("--max-windows", arguments->max_windows, "Measure at most so many; 0 = all")
      ->check(CLI::NonNegativeNumber);
  sub.add_option("--seed", arguments->seed, "Seed of 'self'")->capture_default_str();
  sub.add_flag("--choices", arguments->choices, "Also ask multiple-choice questions");
  return [arguments, &globals]() -> Result<int> { return Evaluation(*arguments, globals).run(); };
}

}  // namespace spud::app
