// SPDX-License-Identifier: Apache-2.0
// Everything the chain has to find out by running models, behind one interface, so that the
// transaction can be tested with scripted answers and attacked with wrong ones. The chain trusts no
// verdict from here: it takes the raw measurement, compares its digests with what it expected and
// decides itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "compress/pass.hpp"
#include "compress/speed.hpp"
#include "formats/model_file.hpp"
#include "quality/dataset.hpp"
#include "quality/gate.hpp"
#include "quality/measurement.hpp"

namespace spud::compress {

using FilePtr = std::shared_ptr<const formats::ModelFile>;

// Data one use has, as it goes into certificate and report.
struct DataUse {
  std::string use;   // "calibration", "validation", "hold-out"
  std::string name;  // "builtin validation"
  std::string digest;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
};

// A candidate's figures. `look` is where sampling stopped (0-based, of the budget's looks).
struct Measured {
  quality::Measurement measurement;
  std::vector<quality::ChoiceResult> choices;  // empty: not asked
  std::size_t look = 0;
};

// False: stop, answer kCancelled.
using MeasurerProgress =
    std::function<bool(std::int64_t done, std::int64_t total, std::string_view what)>;

// Thread-compatible.
class Measurer {
 public:
  virtual ~Measurer() = default;

  virtual const std::vector<DataUse>& data() const = 0;
  virtual const quality::SequenceSet& validation() const = 0;
  virtual const quality::SequenceSet& holdout() const = 0;
  // Of the original: same questions, same order as Measured::choices. Empty: not asked.
  [[nodiscard]] virtual Result<std::vector<quality::ChoiceResult>> reference_choices() = 0;

  // Original against original: divergence zero. An error when the instrument is broken.
  [[nodiscard]] virtual Result<void> check_instrument() = 0;
  // Draws more sequences while the budget leaves the verdict open.
  [[nodiscard]] virtual Result<Measured> measure(FilePtr candidate, const quality::Budget& budget,
                                                 const quality::Measurement* last_accepted) = 0;
  [[nodiscard]] virtual Result<quality::Measurement> measure_holdout(FilePtr artifact) = 0;
  [[nodiscard]] virtual Result<SpeedComparison> compare_speed(FilePtr baseline, FilePtr candidate,
                                                              const SpeedPlan& plan) = 0;
  // Bytes this process grows by when the model is loaded and has run a prompt.
  [[nodiscard]] virtual Result<std::uint64_t> peak_memory(FilePtr candidate) = 0;
  virtual Calibration& calibration() = 0;
  virtual std::string environment() const = 0;  // "AVX-512, 2 threads": how it was measured
};

struct MeasurerContext {
  FilePtr original;
  const Recipe& recipe;
  std::filesystem::path folder;  // for notes that survive a restart
  concurrency::ThreadPool& pool;
  MeasurerProgress progress;
};
using MeasurerFactory = std::function<Result<std::unique_ptr<Measurer>>(const MeasurerContext&)>;

}  // namespace spud::compress
