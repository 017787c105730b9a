// SPDX-License-Identifier: Apache-2.0
// What a quantising pass decides: a type for every tensor, and how its values are found. One writer
// turns a plan into a GGUF file. Values always come from the chain's 16-bit original, never from an
// already quantised step: rounding twice loses twice.
// Which tensors may be quantised is decided here once, so that no pass forgets a tied embedding or
// touches a norm.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "concurrency/thread_pool.hpp"
#include "formats/model_file.hpp"
#include "tensor/dtype.hpp"

namespace spud::compress {

// Mean squared activation of each column, by tensor name.
using Importance = std::map<std::string, std::vector<float>, std::less<>>;

struct TensorChoice {
  tensor::DType type{};
  bool search_scale = false;    // search scales instead of taking the extreme value
  bool use_importance = false;  // weigh the search by calibration activations
};

// choices[i] is for tensors()[i] of the original. Kept in the same order.
struct TensorPlan {
  std::vector<TensorChoice> choices;
};

// A weight matrix that passes may quantise: two-dimensional, "….weight", not a norm, rows a
// multiple of the 32-value block.
bool is_quantisable(const formats::TensorInfo& tensor) noexcept;
// token_embd or output: kept at 8 bits by convention in 4-bit files.
bool is_embedding(const formats::TensorInfo& tensor) noexcept;

// Every tensor as it is in `file`.
TensorPlan keep_plan(const formats::ModelFile& file);
// `type` for all quantisable tensors, the rest kept.
TensorPlan uniform_plan(const formats::ModelFile& file, const TensorChoice& choice);

// Bytes of all tensors under the plan (padding and metadata not counted).
std::uint64_t planned_bytes(const formats::ModelFile& file, const TensorPlan& plan);

// The type of each tensor by name.
std::map<std::string, tensor::DType, std::less<>> planned_types(const formats::ModelFile& file,
                                                                const TensorPlan& plan);

struct QuantiseTensorArgs {
  const formats::ModelFile& file;
  std::size_t index;
  TensorChoice choice;
  std::span<const float> importance;  // of the columns; empty = none
};
// The blocks of one tensor under a choice; rows are spread over the pool. Same bytes for any number
// of threads.
[[nodiscard]] Result<void> quantise_tensor(const QuantiseTensorArgs& args,
                                           concurrency::ThreadPool& pool, std::span<std::byte> out);

// Writes `original` under the plan: metadata copied, `general.file_type` set to the commonest type.
// Fails when the plan asks for importance that is missing, and names the tensor.
[[nodiscard]] Result<void> write_plan(const formats::ModelFile& original, const TensorPlan& plan,
                                      const Importance& importance, concurrency::ThreadPool& pool,
                                      const std::filesystem::path& path);

}  // namespace spud::compress
