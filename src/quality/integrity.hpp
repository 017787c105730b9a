// SPDX-License-Identifier: Apache-2.0
// Is the written file what was asked for? Compares a candidate, read back from disk, with the
// original: types against the plan, every tensor there once, tokenizer, chat template and
// hyper-parameters unchanged, scales finite, weights near the original's within what their type
// allows. Costs one pass over the weights; finds what an average over text may hide.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "formats/model_file.hpp"
#include "tensor/dtype.hpp"

namespace spud::quality {

enum class Fault {
  kMissingTensor,
  kExtraTensor,  // also: a tied head written a second time
  kWrongShape,
  kWrongType,        // bits asked for and bits in the file differ
  kNotFinite,        // NaN or infinity in a scale or value
  kZeroScale,        // a block that became all zero though the original's is not
  kFarFromOriginal,  // swapped, damaged or wrongly scaled weights
  kOffset,           // a constant shift within blocks: a wrong zero point
  kTokenizerChanged,
  kChatTemplateChanged,
  kHyperParameterChanged,  // rope base, number of layers, ...
  kUnreadable,             // a tensor that can not be dequantised
};
std::string_view to_string(Fault fault) noexcept;  // "zero_scale"

struct IntegrityFinding {
  Fault fault;
  std::string subject;  // tensor name or metadata key
  std::string sentence;
};

struct TensorError {
  std::string name;
  tensor::DType type{};
  double relative_rms = 0;  // ||candidate - original|| / ||original||
  double cosine = 1;
};

struct IntegrityReport {
  std::vector<IntegrityFinding> findings;  // empty = sound; at most kMaxFindings
  std::vector<TensorError> tensors;
  bool ok() const noexcept { return findings.empty(); }
  std::string summary() const;  // one sentence: the first finding and how many more
};
inline constexpr std::size_t kMaxFindings = 100;

// Tensors not named keep the original's type.
using TypePlan = std::map<std::string, tensor::DType, std::less<>>;

// Errors only when the *original* can not be read. `on_progress(done, total)` in tensors.
[[nodiscard]] Result<IntegrityReport> check_integrity(
    const formats::ModelFile& original, const formats::ModelFile& candidate, const TypePlan& plan,
    const std::function<void(std::size_t, std::size_t)>& on_progress = {});

// The largest relative RMS error rounding to this type may leave, with room for weighted search.
double relative_error_limit(tensor::DType type) noexcept;

}  // namespace spud::quality
