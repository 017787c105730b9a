// SPDX-License-Identifier: Apache-2.0
#include "quality/integrity.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "formats/gguf.hpp"
#include "quality/block_errors.hpp"

namespace spud::quality {
namespace {

class Findings {
 public:
  explicit Findings(std::vector<IntegrityFinding>& out) : out_(out) {}
  void add(Fault fault, std::string subject, std::string sentence) {
    if (out_.size() < kMaxFindings) {
      out_.push_back({fault, std::move(subject), std::move(sentence)});
    }
  }

 private:
  std::vector<IntegrityFinding>& out_;
};

using formats::Metadata;
using formats::TensorInfo;

std::string stored_bytes(const Metadata::Entry& entry) {
  std::string bytes;
  formats::append_gguf_entry(bytes, entry);
  return bytes;
}

// Every key of `from` with one of the prefixes that is missing in `in`, or has another value there.
void compare_keys(const Metadata& from, const Metadata& in, std::string_view prefix, Fault fault,
                  bool missing_only, Findings& findings) {
  for (const Metadata::Entry& entry : from.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    const formats::MetadataValue* other = in.find(entry.key);
    if (other == nullptr) {
      findings.add(fault, entry.key,
                   fmt::format("metadata '{}' is in one of the files only", entry.key));
    } else if (!missing_only && stored_bytes(entry) != stored_bytes({entry.key, *other})) {
      findings.add(fault, entry.key, fmt::format("metadata '{}' is not the original's", entry.key));
    }
  }
}

void check_metadata(const formats::ModelFile& original, const formats::ModelFile& candidate,
                    Findings& findings) {
  const Metadata& a = original.metadata();
  const Metadata& b = candidate.metadata();
  const struct {
    std::string prefix;
    Fault fault;
  } kGroups[] = {{"general.architecture", Fault::kHyperParameterChanged},
                 {original.architecture() + ".", Fault::kHyperParameterChanged},
                 {"tokenizer.ggml.", Fault::kTokenizerChanged},
                 {"tokenizer.chat_template", Fault::kChatTemplateChanged}};
  for (const auto& group : kGroups) {
    compare_keys(a, b, group.prefix, group.fault, false, findings);
    compare_keys(b, a, group.prefix, group.fault, true, findings);
  }
}

void check_names(const formats::ModelFile& original, const formats::ModelFile& candidate,
                 const TypePlan& plan, Findings& findings) {
  std::set<std::string_view> known;
  for (const TensorInfo& tensor : original.tensors()) known.insert(tensor.name);
  std::set<std::string_view> seen;
  for (const TensorInfo& tensor : candidate.tensors()) {
    if (!seen.insert(tensor.name).second) {
      findings.add(Fault::kExtraTensor, tensor.name,
                   fmt::format("tensor '{}' is in the file twice", tensor.name));
    } else if (!known.contains(tensor.name)) {
      const bool head = tensor.name == "output.weight";
      findings.add(Fault::kExtraTensor, tensor.name,
                   head ? "the output head is tied to the embedding in the original, but the file "
                          "has a copy of its own ('output.weight')"
                        : fmt::format("tensor '{}' is not in the original", tensor.name));
    }
  }
  for (const auto& [name, type] : plan) {
    if (!known.contains(name)) {
      findings.add(
          Fault::kMissingTensor, name,
          fmt::format("the plan names tensor '{}', which the original does not have", name));
    }
  }
}

// K-quants and their like also round the zero points of their blocks, which shifts whole blocks.
bool keeps_zero_points(tensor::DType type) { return tensor::traits(type).block_values == 32; }

// What is wrong with one tensor's values.
void judge_values(const TensorInfo& tensor, const internal::BlockErrors& errors,
                  Findings& findings) {
  const std::string_view type = tensor::to_string(tensor.dtype);
  if (errors.not_finite > 0) {
    findings.add(Fault::kNotFinite, tensor.name,
                 fmt::format("tensor '{}' ({}): {} values are NaN or infinite, the first at {}",
                             tensor.name, type, errors.not_finite, errors.first_not_finite));
    return;
  }
  if (errors.zeroed_blocks > 0) {
    findings.add(Fault::kZeroScale, tensor.name,
                 fmt::format("tensor '{}' ({}): {} blocks became zero, the first at value {}, "
                             "though the original's are not",
                             tensor.name, type, errors.zeroed_blocks, errors.first_zeroed));
  }
  const double limit = relative_error_limit(tensor.dtype);
  if (errors.relative_rms() > limit) {
    findings.add(
        Fault::kFarFromOriginal, tensor.name,
        fmt::format("tensor '{}' ({}): the weights differ from the original's by {:.3g} of "
                    "their size (limit {:.3g}, cosine {:.4f})",
                    tensor.name, type, errors.relative_rms(), limit, errors.cosine()));
  }
  // Below an eighth of the limit the values lay on the grid already, and what is left is the
  // rounding of scales.
  if (keeps_zero_points(tensor.dtype) && errors.offset_share() > internal::kMaxOffsetShare &&
      errors.relative_rms() > limit / 8) {
    findings.add(Fault::kOffset, tensor.name,
                 fmt::format("tensor '{}' ({}): {:.0f} % of the error is one shift per block, as a "
                             "wrong zero point makes it (rounding gives about 3 %)",
                             tensor.name, type, 100 * errors.offset_share()));
  }
}

Result<void> check_tensor(const formats::ModelFile& original, std::size_t index,
                          const formats::ModelFile& candidate, const TypePlan& plan,
                          IntegrityReport& report, Findings& findings) {
  const TensorInfo& wanted = original.tensors()[index];
  const auto found = candidate.find_tensor_index(wanted.name);
  if (!found) {
    findings.add(Fault::kMissingTensor, wanted.name,
                 fmt::format("tensor '{}' is missing", wanted.name));
    return {};
  }
  const TensorInfo& tensor = candidate.tensors()[*found];
  if (tensor.shape != wanted.shape) {
    findings.add(Fault::kWrongShape, wanted.name,
                 fmt::format("tensor '{}' has another shape than the original's", wanted.name));
    return {};
  }
  const auto planned = plan.find(wanted.name);
  const tensor::DType type = planned != plan.end() ? planned->second : wanted.dtype;
  if (tensor.dtype != type) {
    findings.add(Fault::kWrongType, wanted.name,
                 fmt::format("tensor '{}' is {} in the file, but {} was asked for", wanted.name,
                             tensor::to_string(tensor.dtype), tensor::to_string(type)));
  }
  const internal::StoredTensor a{wanted, original.tensor_bytes(index)};
  const internal::StoredTensor b{tensor, candidate.tensor_bytes(*found)};
  if (auto readable = internal::check_readable(a); !readable) {
    return fail_within("original", std::move(readable).error());
  }
  auto errors = internal::compare_blocks(a, b);
  if (!errors) {
    findings.add(Fault::kUnreadable, wanted.name, errors.error().message());
    return {};
  }
  judge_values(tensor, *errors, findings);
  report.tensors.push_back({wanted.name, tensor.dtype, errors->relative_rms(), errors->cosine()});
  return {};
}

}  // namespace

std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::kMissingTensor:
      return "missing_tensor";
    case Fault::kExtraTensor:
      return "extra_tensor";
    case Fault::kWrongShape:
      return "wrong_shape";
    case Fault::kWrongType:
      return "wrong_type";
    case Fault::kNotFinite:
      return "not_finite";
    case Fault::kZeroScale:
      return "zero_scale";
    case Fault::kFarFromOriginal:
      return "far_from_original";
    case Fault::kOffset:
      return "offset";
    case Fault::kTokenizerChanged:
      return "tokenizer_changed";
    case Fault::kChatTemplateChanged:
      return "chat_template_changed";
    case Fault::kHyperParameterChanged:
      return "hyper_parameter_changed";
    case Fault::kUnreadable:
      return "unreadable";
  }
  return "unreadable";
}

// Rounding noise of normally distributed weights is about a third of these (measured on the two
// models of the README with plain rounding); the rest is room for outliers and weighted search.
double relative_error_limit(tensor::DType type) noexcept {
  using tensor::DType;
  switch (type) {
    case DType::kF32:
    case DType::kF64:
      return 1e-6;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 8e-3;
    case DType::kQ8_0:
      return 0.03;
    case DType::kQ6_K:
      return 0.08;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
      return 0.15;
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ4_K:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return 0.30;
    case DType::kQ3_K:
      return 0.50;
    case DType::kQ2_K:
      return 0.80;
    default:
      return 0;
  }
}

std::string IntegrityReport::summary() const {
  if (ok()) return fmt::format("{} tensors are what was asked for", tensors.size());
  if (findings.size() == 1) return findings.front().sentence;
  return fmt::format("{} (and {} more findings)", findings.front().sentence, findings.size() - 1);
}

Result<IntegrityReport> check_integrity(
    const formats::ModelFile& original, const formats::ModelFile& candidate, const TypePlan& plan,
    const std::function<void(std::size_t, std::size_t)>& on_progress) {
  IntegrityReport report;
  Findings findings(report.findings);
  check_metadata(original, candidate, findings);
  check_names(original, candidate, plan, findings);
  for (std::size_t i = 0; i < original.tensors().size(); ++i) {
    SPUD_TRY(check_tensor(original, i, candidate, plan, report, findings));
    if (on_progress) on_progress(i + 1, original.tensors().size());
  }
  return report;
}

}  // namespace spud::quality
