// SPDX-License-Identifier: Apache-2.0
// Hugging Face model folders: config.json, tokenizer.json and safetensors files (one, or several
// with an index), translated to GGUF's names on opening and back on writing. Architectures: llama
// (also Mistral), qwen2, qwen3, gemma3, text only.
// What the translation changes: llama's query and key rows are permuted (GGUF rotates neighbouring
// pairs, Hugging Face the two halves), gemma's norms get 1 added, one-dimensional tensors become
// F32. Those tensors are held in memory, all others stay views into the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "formats/model_file.hpp"

namespace spud::formats {

[[nodiscard]] Result<std::shared_ptr<const ModelFile>> open_hf_folder(
    const std::filesystem::path& folder);

struct HfWriteOptions {
  // What quantised tensors are written as (F32, F16 or BF16); plain ones keep their type. A tensor
  // with values beyond F16's range becomes BF16.
  tensor::DType quantised_as = tensor::DType::kF16;
  std::uint64_t max_shard_bytes = 5'000'000'000;
};

// Writes the model as a folder that must not exist yet (or be empty); it appears complete or not
// at all. Metadata that has no place in config.json or tokenizer.json travels in config.json under
// "gguf_metadata", so that reading the folder gives all of it back.
[[nodiscard]] Result<void> write_hf_folder(const std::filesystem::path& folder,
                                           const ModelFile& file,
                                           const HfWriteOptions& options = {});

}  // namespace spud::formats
