// SPDX-License-Identifier: Apache-2.0
// What passes may learn from running the original on calibration text: the mean square of every
// weight matrix's input columns, and how much the output moves when tensors are exchanged.
// Deterministic: the same text and instruction set give the same bits for any number of threads.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "compress/measurer.hpp"
#include "compress/overlay_file.hpp"
#include "compress/pass.hpp"
#include "engine/scorer.hpp"
#include "model/model.hpp"
#include "quality/measurement.hpp"

namespace spud::compress {

struct CalibrationInputs {
  FilePtr original;
  engine::Scorer* scorer = nullptr;  // of the original
  model::LoadOptions load;
  quality::SequenceSet text;  // the calibration split
  std::int64_t importance_tokens = 0;
  std::uint64_t logits_limit_bytes = 0;
  std::uint64_t blocks_limit_bytes = 0;  // of quantised tensors kept between questions
  std::filesystem::path folder;
  concurrency::ThreadPool* pool = nullptr;
  MeasurerProgress progress;
};

class EngineCalibration final : public Calibration, private SensitivityProbe {
 public:
  explicit EngineCalibration(CalibrationInputs inputs);

  Result<const Importance*> importance() override;
  Result<SensitivityProbe*> probe() override { return static_cast<SensitivityProbe*>(this); }
  std::string load_note(std::string_view name) override;
  Result<void> save_note(std::string_view name, std::string_view text) override;

 private:
  Result<Loss> measure(const std::map<std::size_t, TensorChoice>& replaced,
                       std::int64_t max_tokens) override;
  Result<OverlayTensor> quantised(std::size_t index, const TensorChoice& choice);
  Result<FilePtr> overlay(const std::map<std::size_t, TensorChoice>& replaced);
  std::filesystem::path note_path(std::string_view name) const;

  CalibrationInputs inputs_;
  quality::ReferenceLogits reference_;
  std::optional<Importance> importance_;
  // The joint questions ask for the same tensors again and again; searching scales is dear.
  std::map<std::pair<std::size_t, tensor::DType>, OverlayTensor> blocks_;
  std::uint64_t blocks_bytes_ = 0;
};

}  // namespace spud::compress
