// SPDX-License-Identifier: Apache-2.0
#include "compress/calibration.hpp"

#include <cmath>
#include <fstream>
#include <sstream>

#include "io/atomic_file.hpp"

namespace spud::compress {
namespace {

// Sums of squares per column, in double and in order of rows: independent of threads and chunks.
class ColumnSquares {
 public:
  void add(std::string_view tensor, const float* x, std::int64_t rows, std::int64_t k) {
    auto found = sums_.find(tensor);
    if (found == sums_.end()) {
      found = sums_.emplace(std::string(tensor), Sums{}).first;
      found->second.squares.resize(static_cast<std::size_t>(k));
    }
    Sums& sums = found->second;
    sums.rows += rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* values = x + row * k;
      for (std::int64_t i = 0; i < k; ++i) {
        const double value = values[i];
        sums.squares[static_cast<std::size_t>(i)] += value * value;
      }
    }
  }

  // A column with NaN or infinity says that the model itself overflows: an error that names it.
  Result<Importance> means() const {
    Importance importance;
    for (const auto& [name, sums] : sums_) {
      auto& means = importance[name];
      for (const double square : sums.squares) {
        const auto mean = static_cast<float>(square / static_cast<double>(sums.rows));
        if (!std::isfinite(mean)) {
          return fail(ErrorCode::kDataLoss,
                      "calibration: the input of '{}' is not finite; the model overflows on this "
                      "text",
                      name);
        }
        means.push_back(mean);
      }
    }
    return importance;
  }

 private:
  struct Sums {
    std::vector<double> squares;
    std::int64_t rows = 0;
  };
  std::map<std::string, Sums, std::less<>> sums_;
};

// As many whole sequences as hold `max_tokens` scored tokens, at least one.
std::size_t sequences_for(const quality::SequenceSet& set, std::int64_t max_tokens) {
  std::int64_t tokens = 0;
  std::size_t count = 0;
  while (count < set.sequences.size() && tokens < max_tokens) {
    tokens += set.sequences[count++].num_scored();
  }
  return count;
}

}  // namespace

EngineCalibration::EngineCalibration(CalibrationInputs inputs)
    : inputs_(std::move(inputs)), reference_(*inputs_.scorer, inputs_.logits_limit_bytes) {}

Result<const Importance*> EngineCalibration::importance() {
  if (importance_) return &*importance_;
  ColumnSquares squares;
  const model::ActivationObserver observer = [&squares](std::string_view tensor, const float* x,
                                                        std::int64_t rows, std::int64_t k) {
    squares.add(tensor, x, rows, k);
  };
  const std::size_t count = sequences_for(inputs_.text, inputs_.importance_tokens);
  inputs_.scorer->set_observer(&observer);
  Result<void> scored{};
  for (std::size_t i = 0; i < count && scored; ++i) {
    if (!inputs_.progress(static_cast<std::int64_t>(i), static_cast<std::int64_t>(count),
                          "calibrating")) {
      scored = fail(ErrorCode::kCancelled, "calibration was stopped");
      break;
    }
    // From position 0: the output matrix, too, must see all rows.
    scored = inputs_.scorer->score(inputs_.text.sequences[i].tokens, 0,
                                   [](std::int64_t, std::span<const float>) {});
  }
  inputs_.scorer->set_observer(nullptr);
  if (!scored) return std::unexpected(std::move(scored).error());
  SPUD_TRY(importance_, squares.means());
  return &*importance_;
}

Result<OverlayTensor> EngineCalibration::quantised(std::size_t index, const TensorChoice& choice) {
  const auto known = blocks_.find({index, choice.type});
  if (known != blocks_.end()) return known->second;
  const formats::TensorInfo& info = inputs_.original->tensors().at(index);
  const auto size = tensor::bytes_for(choice.type, info.num_values());
  if (!size) {
    return fail(ErrorCode::kInvalidArgument, "tensor '{}' cannot be {}", info.name,
                tensor::to_string(choice.type));
  }
  std::span<const float> weights;
  if (choice.use_importance) {
    SPUD_TRY(const Importance* importance, this->importance());
    const auto found = importance->find(info.name);
    if (found == importance->end()) {
      return fail(ErrorCode::kDataLoss, "tensor '{}' was never seen in calibration", info.name);
    }
    weights = found->second;
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(*size);
  SPUD_TRY(quantise_tensor({*inputs_.original, index, choice, weights}, *inputs_.pool, *bytes));
  OverlayTensor tensor{.type = choice.type, .bytes = std::move(bytes)};
  if (blocks_bytes_ + *size <= inputs_.blocks_limit_bytes) {
    blocks_bytes_ += *size;
    blocks_.emplace(std::pair(index, choice.type), tensor);
  }
  return tensor;
}

Result<FilePtr> EngineCalibration::overlay(const std::map<std::size_t, TensorChoice>& replaced) {
  std::map<std::size_t, OverlayTensor> tensors;
  for (const auto& [index, choice] : replaced) {
    SPUD_TRY(tensors[index], quantised(index, choice));
  }
  return std::make_shared<const OverlayFile>(inputs_.original, std::move(tensors));
}

Result<SensitivityProbe::Loss> EngineCalibration::measure(
    const std::map<std::size_t, TensorChoice>& replaced, std::int64_t max_tokens) {
  SPUD_TRY(FilePtr file, overlay(replaced));
  SPUD_TRY(auto model, model::Model::load(std::move(file), *inputs_.pool, inputs_.load));
  SPUD_TRY(const auto scorer, engine::make_scorer(std::move(model), *inputs_.pool));
  quality::Measurement m;
  SPUD_TRY(quality::measure(inputs_.text, sequences_for(inputs_.text, max_tokens), reference_,
                            *scorer, *inputs_.pool, m));
  return Loss{.mean_kld = m.kld_mean(),
              .log_perplexity_rise =
                  std::log(m.perplexity_candidate()) - std::log(m.perplexity_reference()),
              .top1_agreement = m.top1_share()};
}

std::filesystem::path EngineCalibration::note_path(std::string_view name) const {
  return inputs_.folder / fmt::format("{}.txt", name);
}

std::string EngineCalibration::load_note(std::string_view name) {
  std::ifstream in(note_path(name), std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? std::move(text).str() : std::string();
}

Result<void> EngineCalibration::save_note(std::string_view name, std::string_view text) {
  return io::write_file_atomically(note_path(name), text);
}

}  // namespace spud::compress
