// SPDX-License-Identifier: Apache-2.0
#include "compress/self_data.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "concurrency/clock.hpp"
#include "engine/model_engine.hpp"
#include "io/atomic_file.hpp"
#include "quality/engine_sampler.hpp"

namespace spud::compress {
namespace {

using quality::TokenId;
using Samples = std::vector<std::vector<TokenId>>;

constexpr std::string_view kFileName = "self.txt";
constexpr std::int64_t kAtOnce = 16;  // sequences the engine runs together
// A sequence's first predictions are not scored and the last token predicts nothing.
constexpr std::int64_t kUnscored = quality::DocumentOptions{}.unscored + 1;

// One line says what was asked, then a line a sample: its token ids.
std::string to_text(std::string_view question, const Samples& samples) {
  std::string text = fmt::format("{}\n", question);
  for (const auto& sample : samples) text += fmt::format("{}\n", fmt::join(sample, " "));
  return text;
}

std::optional<Samples> parse(std::istream& in, std::string_view question, std::int64_t count) {
  std::string line;
  if (!std::getline(in, line) || line != question) return std::nullopt;
  Samples samples;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    auto& sample = samples.emplace_back();
    for (TokenId id = 0; words >> id;) sample.push_back(id);
    if (!words.eof()) return std::nullopt;
  }
  if (std::ssize(samples) != count) return std::nullopt;
  return samples;
}

}  // namespace

Result<Samples> SavedSampler::sample(std::int64_t count, std::int64_t max_tokens,
                                     std::uint64_t seed) {
  const std::string question =
      fmt::format("samples {} tokens {} seed {} model {}", count, max_tokens, seed, model_digest_);
  if (std::ifstream in(file_, std::ios::binary); in) {
    if (auto saved = parse(in, question, count)) return *std::move(saved);
  }
  SPUD_TRY(auto samples, sampler_.sample(count, max_tokens, seed));
  SPUD_TRY(io::write_file_atomically(file_, to_text(question, samples)));
  return samples;
}

std::int64_t self_samples(const MeasureOptions& options) noexcept {
  const std::int64_t scored = std::max<std::int64_t>(options.sequence_tokens - kUnscored, 1);
  const std::int64_t tokens = std::max(
      {2 * options.validation_tokens, 4 * options.holdout_tokens, 4 * options.calibration_tokens});
  const std::int64_t with_reserve = tokens + tokens / 4;
  return (with_reserve + scored - 1) / scored;
}

Result<quality::Dataset> sample_self_data(const MeasureOptions& options,
                                          const SelfDataInputs& inputs) {
  const concurrency::RealClock clock;
  const std::int64_t tokens =
      std::min(options.sequence_tokens, inputs.model->hyper_parameters().context_length);
  SPUD_TRY(const auto engine,
           engine::make_engine(
               {.model = inputs.model, .tokenizer = inputs.tokenizer, .clock = &clock},
               {.context = tokens, .max_sequences = kAtOnce, .threads = inputs.threads}));
  quality::EngineSampler sampler(*engine);
  SavedSampler saved(sampler, inputs.folder / kFileName, inputs.model_digest);
  return quality::sample_dataset(saved, self_samples(options), tokens, kSelfSeed);
}

}  // namespace spud::compress
