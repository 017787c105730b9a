// SPDX-License-Identifier: Apache-2.0
// Qwen 2 and 2.5: biases on queries, keys and values; rotation in halves.
#include "model/arch/arch.hpp"
#include "model/hyper_reader.hpp"

namespace spud::model::arch {

Result<DecoderSpec> describe_qwen2(const formats::ModelFile& file) {
  const HyperReader reader(file);
  SPUD_TRY(DecoderSpec spec, describe_common(reader, /*interleaved=*/false));
  spec.qkv_bias = true;
  return spec;
}

}  // namespace spud::model::arch
