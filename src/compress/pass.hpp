// SPDX-License-Identifier: Apache-2.0
// One step's code. A pass writes a candidate file and says what it meant to write; the chain checks
// the file against that and never trusts the pass. Passes are rows of a constant table
// (passes.cpp); tests bring their own table with broken ones. A pass must be deterministic: killed
// and run again, it writes the same bytes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "compress/recipe.hpp"
#include "compress/tensor_plan.hpp"
#include "concurrency/thread_pool.hpp"
#include "formats/model_file.hpp"

namespace spud::compress {

// How much quality an assignment of types costs, measured on calibration text: the original with
// some tensors exchanged against the original itself. A question costs a forward pass of
// `max_tokens`. Deterministic.
class SensitivityProbe {
 public:
  virtual ~SensitivityProbe() = default;
  struct Loss {
    double mean_kld = 0;             // nats per token against the original
    double log_perplexity_rise = 0;  // mean loss minus the original's
    double top1_agreement = 1;
  };
  // `replaced`: index of the tensor -> its new type and bytes' rule.
  [[nodiscard]] virtual Result<Loss> measure(const std::map<std::size_t, TensorChoice>& replaced,
                                             std::int64_t max_tokens) = 0;
};

// What calibration found out; computed on first use, kept in the chain's folder for a resume.
class Calibration {
 public:
  virtual ~Calibration() = default;
  [[nodiscard]] virtual Result<const Importance*> importance() = 0;
  [[nodiscard]] virtual Result<SensitivityProbe*> probe() = 0;
  // A small text a pass keeps between runs ("sensitivity"); written atomically.
  virtual std::string load_note(std::string_view name) = 0;
  [[nodiscard]] virtual Result<void> save_note(std::string_view name, std::string_view text) = 0;
};

// Progress inside a long pass: done of total, and what.
using PassProgress =
    std::function<void(std::int64_t done, std::int64_t total, std::string_view what)>;

struct PassContext {
  const formats::ModelFile& original;
  const formats::ModelFile& accepted;  // the last accepted artifact
  const StepOptions& step;
  std::string_view alternative;
  std::int64_t sensitivity_tokens = 128;
  int attempt = 0;  // 0 for the first try of this alternative; later ones must be safer
  Calibration& calibration;
  concurrency::ThreadPool& pool;
  PassProgress progress;
};

struct PassOutput {
  // The type each tensor of the file must have, by name: nothing may be missing or other.
  std::map<std::string, tensor::DType, std::less<>> expected_types;
  std::string note;  // for the report: "142 of 211 tensors at 4 bits"
};

struct Alternative {
  std::string_view name;
  std::string_view summary;
  int attempts = 1;  // tries, each safer than the one before
};

struct Pass {
  std::string_view name;
  std::string_view summary;
  std::span<const Alternative> alternatives;  // in the order they are tried
  // Nothing to do on this model (already 16-bit): a sentence, or empty to run.
  std::string (*skip_reason)(const formats::ModelFile& accepted);
  Result<PassOutput> (*run)(const PassContext& context, const std::filesystem::path& out);
};

// Writes the plan and states it as the expectation.
[[nodiscard]] Result<PassOutput> run_plan(const PassContext& context, const TensorPlan& plan,
                                          const std::filesystem::path& out);

std::span<const Pass> builtin_passes();

}  // namespace spud::compress
