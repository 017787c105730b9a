// SPDX-License-Identifier: Apache-2.0
#include "engine/step_work.hpp"

#include <algorithm>
#include <string>

namespace spud::engine {
namespace {

// Gemma 3: five local layers, then a global one.
constexpr std::int64_t kWindowPattern = 6;
constexpr int kOpsPerWeight = 2;  // a multiplication and an addition

std::int64_t windowed_layers_of(const formats::ModelFile& file,
                                const model::HyperParameters& hyper) {
  if (hyper.sliding_window == 0) return 0;
  const std::int64_t pattern =
      file.metadata()
          .find_int(std::string(file.architecture()) + ".attention.sliding_window_pattern")
          .value_or(kWindowPattern);
  if (pattern < 1) return hyper.num_layers;
  return hyper.num_layers - hyper.num_layers / pattern;
}

}  // namespace

double StepWork::kv_bytes(std::int64_t context) const noexcept {
  const std::int64_t local = window > 0 ? std::min(context, window) : context;
  return kv_bytes_per_position *
         static_cast<double>((layers - windowed_layers) * context + windowed_layers * local);
}

StepWork describe_step_work(const formats::ModelFile& file, const model::HyperParameters& hyper,
                            const kvcache::Geometry& geometry) {
  StepWork work{.layers = hyper.num_layers,
                .windowed_layers = windowed_layers_of(file, hyper),
                .window = hyper.sliding_window};
  const auto positions_per_page = static_cast<double>(kernels::kPageTokens);
  work.kv_bytes_per_position = static_cast<double>(geometry.page_bytes()) / positions_per_page /
                               static_cast<double>(std::max<std::int64_t>(1, hyper.num_layers));
  const formats::TensorInfo* head = file.find_tensor("output.weight");
  if (head == nullptr) head = file.find_tensor("token_embd.weight");  // tied
  for (const formats::TensorInfo& tensor : file.tensors()) {
    const bool in_layer = tensor.name.starts_with("blk.");
    if (!in_layer && &tensor != head) continue;
    work.weight_bytes += static_cast<double>(tensor.size_bytes);
    if (tensor.shape.size() < 2) continue;  // a norm
    const double ops = kOpsPerWeight * static_cast<double>(tensor.num_values());
    (in_layer ? work.row_ops : work.head_ops) += ops;
  }
  return work;
}

}  // namespace spud::engine
