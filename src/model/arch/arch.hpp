// SPDX-License-Identifier: Apache-2.0
// One function per architecture; see architecture.hpp.
#pragma once

#include "base/result.hpp"
#include "formats/model_file.hpp"
#include "model/decoder_spec.hpp"

namespace spud::model::arch {

[[nodiscard]] Result<DecoderSpec> describe_llama(const formats::ModelFile& file);
[[nodiscard]] Result<DecoderSpec> describe_qwen2(const formats::ModelFile& file);
[[nodiscard]] Result<DecoderSpec> describe_qwen3(const formats::ModelFile& file);
[[nodiscard]] Result<DecoderSpec> describe_gemma3(const formats::ModelFile& file);

}  // namespace spud::model::arch
