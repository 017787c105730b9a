// SPDX-License-Identifier: Apache-2.0
// A loaded language model: hyper-parameters, packed weights and the forward pass over a batch of
// rows from several sequences. Knows nothing of scheduling or sampling; the caller owns the KV
// pages. Immutable after load; one forward at a time per ForwardWorkspace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "concurrency/thread_pool.hpp"
#include "formats/model_file.hpp"
#include "kernels/kernel_table.hpp"
#include "kvcache/kv_cache.hpp"

namespace spud::model {

using TokenId = std::int32_t;

struct HyperParameters {
  std::string architecture;
  std::int64_t num_layers = 0;
  std::int64_t hidden = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t vocabulary = 0;
  std::int64_t context_length = 0;  // trained
  std::int64_t sliding_window = 0;  // 0 = none
  float rms_epsilon = 0;
  float rope_base = 0;
};

struct TopLogit {
  TokenId token = 0;
  float logit = 0;
};

// What is kept of a row's logits when not all of them are wanted: they are reduced as they are
// computed and never written. Bit for bit what full logits would give.
struct LogitSummary {
  // Wanted.
  std::int32_t top_count = 1;
  bool wants_log_sum_exp = false;
  // Found. Numbers only: a row of not-a-numbers has an empty top.
  std::vector<TopLogit> top;  // the largest first; of equals the smaller token first
  float log_sum_exp = 0;      // when wanted
};

// One sequence's share of a batch: consecutive tokens of one sequence.
struct SequenceSlice {
  std::span<const TokenId> tokens;  // [n]
  std::int64_t first_position = 0;
  const kvcache::BlockTable* pages = nullptr;  // covers first_position + n positions
  // Logits are computed for tokens [first_logit, n) of this slice; n = none.
  std::int64_t first_logit = 0;
  // For a slice with one row of logits: filled in instead of them.
  LogitSummary* summary = nullptr;
};

// Sees the input rows of each weight product before quantisation (calibration): tensor's GGUF
// name, x [rows, k]. Called on the forwarding thread.
using ActivationObserver =
    std::function<void(std::string_view tensor, const float* x, std::int64_t rows, std::int64_t k)>;

struct LoadOptions {
  kernels::Isa isa_limit = kernels::Isa::kAvx512;
  // Where packed weights are kept between starts (packed_file.hpp); empty = nowhere.
  std::filesystem::path packed_folder;
};

class Model {
 public:
  virtual ~Model() = default;
  // Names the architecture that is not supported, the tensor that is missing or misshapen.
  [[nodiscard]] static Result<std::shared_ptr<const Model>> load(
      std::shared_ptr<const formats::ModelFile> file, concurrency::ThreadPool& pool,
      const LoadOptions& options = {});

  virtual const HyperParameters& hyper_parameters() const noexcept = 0;
  // Of a cache that forward() can work on; any type of keys and values will do.
  virtual kvcache::Geometry kv_geometry(
      kernels::KvType type = kernels::kDefaultKvType) const noexcept = 0;
  virtual std::size_t weight_bytes() const noexcept = 0;  // resident, packed
  virtual const kernels::KernelTable& kernel_table() const noexcept = 0;

  // Scratch buffers, grown to the largest batch seen; one per forwarding thread.
  class Workspace;
  virtual std::shared_ptr<Workspace> make_workspace() const = 0;
  virtual std::size_t workspace_bytes() const = 0;  // of one, however large the batch

  // Writes K/V of all tokens into `cache` and logits into `logits` [sum of (n - first_logit),
  // vocabulary], slices in order, those with a summary left out. Pure in exact arithmetic order:
  // each row's result is independent of the rest of the batch, of chunking and of the number of
  // threads.
  virtual void forward(std::span<const SequenceSlice> batch, kvcache::KvCache& cache,
                       Workspace& workspace, concurrency::ThreadPool& pool, std::span<float> logits,
                       const ActivationObserver* observer = nullptr) const = 0;
};

// Names of the supported architectures, for messages and `spud inspect`.
std::vector<std::string_view> architecture_names();

}  // namespace spud::model
