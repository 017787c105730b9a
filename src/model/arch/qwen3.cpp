// SPDX-License-Identifier: Apache-2.0
// Qwen 3, dense: each query and key head is normalised before the rotation; no biases.
#include "model/arch/arch.hpp"
#include "model/hyper_reader.hpp"

namespace spud::model::arch {

Result<DecoderSpec> describe_qwen3(const formats::ModelFile& file) {
  const HyperReader reader(file);
  SPUD_TRY(DecoderSpec spec, describe_common(reader, /*interleaved=*/false));
  spec.qk_norm = true;
  return spec;
}

}  // namespace spud::model::arch
