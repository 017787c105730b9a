// SPDX-License-Identifier: Apache-2.0
// The tensors of a decoder, found by name, checked against the shape the hyper-parameters ask for,
// and packed into the layout that the matrix products read. A tied embedding is stored once: the
// packed head, whose rows are read back for the lookup.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "concurrency/thread_pool.hpp"
#include "formats/model_file.hpp"
#include "kernels/kernel_table.hpp"
#include "model/decoder_spec.hpp"
#include "model/weight_arena.hpp"

namespace spud::model {

// A packed matrix [n, k]: n rows of k values.
struct Weight {
  std::string name;
  const kernels::MatmulKernels* kernels = nullptr;
  const std::byte* packed = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

using FloatVector = std::vector<float>;  // empty = this model has none

struct LayerWeights {
  FloatVector attention_norm;
  Weight query, key, value, output;
  FloatVector query_bias, key_bias, value_bias, output_bias;
  FloatVector query_norm, key_norm;
  FloatVector post_attention_norm;
  FloatVector ffn_norm;
  Weight gate, up, down;
  FloatVector post_ffn_norm;
};

struct DecoderWeights {
  Weight embedding;  // rows are read back; shares storage with `head` when tied
  Weight head;
  FloatVector output_norm;
  std::vector<LayerWeights> layers;
  std::vector<FloatVector> rope_factors;  // per DecoderSpec::ropes
  std::unique_ptr<WeightArena> arena;
};

// kInvalidArgument for a missing or misshapen tensor, kUnimplemented for a type without product;
// the message names the tensor. `packed_folder`: see packed_file.hpp; empty = nothing is kept.
[[nodiscard]] Result<DecoderWeights> load_weights(const formats::ModelFile& file,
                                                  const DecoderSpec& spec,
                                                  const kernels::KernelTable& kernels,
                                                  concurrency::ThreadPool& pool,
                                                  const std::filesystem::path& packed_folder);

}  // namespace spud::model
