// SPDX-License-Identifier: Apache-2.0
// A complete model file small enough to make in a test: two layers of random weights, a byte-level
// tokenizer and a chat template. It talks nonsense, but deterministically, and through the same
// code as a real one. For tests only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "formats/model_file.hpp"
#include "tensor/dtype.hpp"

namespace spud::model::testing {

struct TinyModelOptions {
  std::string architecture = "llama";  // also "qwen2", "qwen3", "gemma3"
  tensor::DType weights = tensor::DType::kQ8_0;
  tensor::DType embedding = tensor::DType::kQ8_0;
  bool tied = true;  // the embedding is the head
  std::int64_t num_layers = 2;
  std::int64_t hidden = 64;
  std::int64_t num_heads = 4;
  std::int64_t num_kv_heads = 2;
  std::int64_t head_dim = 16;
  std::int64_t ffn = 96;
  std::int64_t context_length = 512;
  std::int64_t sliding_window = 40;  // gemma3 only
  std::uint64_t seed = 1;
};

// 256 byte tokens, then a few merged ones, then the special ones: "<|im_start|>", "<|im_end|>"
// (end of generation), "<|endoftext|>" (BOS and EOS).
inline constexpr std::int64_t kTinyVocabulary = 300;

// Metadata of such a model: hyper-parameters, tokenizer, chat template.
formats::Metadata tiny_metadata(const TinyModelOptions& options = {});

// Writes the file (about 150 kB). The same options give the same bytes.
[[nodiscard]] Result<void> write_tiny_model(const std::filesystem::path& path,
                                            const TinyModelOptions& options = {});

// A file in a folder of its own in the system's temporary folder, removed at the end of its life.
class TinyModelFile {
 public:
  explicit TinyModelFile(const TinyModelOptions& options = {});  // aborts when it cannot be written
  ~TinyModelFile();
  TinyModelFile(const TinyModelFile&) = delete;
  TinyModelFile& operator=(const TinyModelFile&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace spud::model::testing
