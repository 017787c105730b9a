// SPDX-License-Identifier: Apache-2.0
#include "compress/passes/int4.hpp"

#include "compress/passes/mixed.hpp"

namespace spud::compress::int4 {
namespace {

using tensor::DType;

// The common convention: the two matrices over the vocabulary keep 8 bits.
TensorPlan four_bit_plan(const formats::ModelFile& original, const TensorChoice& choice) {
  TensorPlan plan = uniform_plan(original, choice);
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    if (is_embedding(original.tensors()[i])) plan.choices[i] = {.type = DType::kQ8_0};
  }
  return plan;
}

}  // namespace

std::string skip_reason(const formats::ModelFile& accepted) {
  for (const formats::TensorInfo& tensor : accepted.tensors()) {
    if (is_quantisable(tensor) && tensor::traits(tensor.dtype).bits_per_value() >
                                      tensor::traits(DType::kQ4_0).bits_per_value()) {
      return {};
    }
  }
  return "all weight matrices have 4 bits already";
}

Result<PassOutput> run(const PassContext& context, const std::filesystem::path& out) {
  const formats::ModelFile& original = context.original;
  if (context.alternative == "rtn") {
    return run_plan(context, four_bit_plan(original, {.type = DType::kQ4_0}), out);
  }
  if (context.alternative == "mixed") return run_mixed(context, out);
  const DType type = context.alternative == "q4_0_search" ? DType::kQ4_0 : DType::kIQ4_NL;
  return run_plan(
      context,
      four_bit_plan(original, {.type = type, .search_scale = true, .use_importance = true}), out);
}

}  // namespace spud::compress::int4
