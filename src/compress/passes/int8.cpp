// SPDX-License-Identifier: Apache-2.0
#include "compress/passes/int8.hpp"

namespace spud::compress::int8 {

std::string skip_reason(const formats::ModelFile& accepted) {
  for (const formats::TensorInfo& tensor : accepted.tensors()) {
    if (is_quantisable(tensor) && tensor::traits(tensor.dtype).bits_per_value() >
                                      tensor::traits(tensor::DType::kQ8_0).bits_per_value()) {
      return {};
    }
  }
  return "all weight matrices have 8 bits or fewer already";
}

Result<PassOutput> run(const PassContext& context, const std::filesystem::path& out) {
  return run_plan(context, uniform_plan(context.original, {.type = tensor::DType::kQ8_0}), out);
}

}  // namespace spud::compress::int8
