// SPDX-License-Identifier: Apache-2.0
// Llama: the plain block. GGUF stores its query and key rows so that rotated pairs are neighbours.
#include "model/arch/arch.hpp"
#include "model/hyper_reader.hpp"

namespace spud::model::arch {

Result<DecoderSpec> describe_llama(const formats::ModelFile& file) {
  const HyperReader reader(file);
  return describe_common(reader, /*interleaved=*/true);
}

}  // namespace spud::model::arch
