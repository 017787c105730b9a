// SPDX-License-Identifier: Apache-2.0
// What one step of a model must at least read and compute, from the file's shapes: the weights that
// take part in products once, whatever the number of rows; keys and values of every stream; two
// operations per weight and row. What a kernel reads beyond that (unpacked copies, tails) is its
// own loss and shows as such. Attention's own operations and the norms are left out: they are
// small.
#pragma once

#include <cstdint>

#include "formats/model_file.hpp"
#include "kvcache/kv_cache.hpp"
#include "model/model.hpp"

namespace spud::engine {

struct StepWork {
  double weight_bytes = 0;           // as in the file; a step reads them once
  double row_ops = 0;                // products of one row through all layers
  double head_ops = 0;               // of one row that samples, on top
  double kv_bytes_per_position = 0;  // one layer
  std::int64_t layers = 0;
  std::int64_t windowed_layers = 0;  // see only the last `window` positions
  std::int64_t window = 0;

  // Keys and values that one stream reads with `context` positions behind it.
  double kv_bytes(std::int64_t context) const noexcept;
};

StepWork describe_step_work(const formats::ModelFile& file, const model::HyperParameters& hyper,
                            const kvcache::Geometry& geometry);

}  // namespace spud::engine
