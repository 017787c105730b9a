// SPDX-License-Identifier: Apache-2.0
// The generic decoder: runs any DecoderSpec on packed weights. A step is a fixed list of parallel
// regions per layer (query/key/value products, attention, output product, gate/up, down); what is
// elementwise per row is done inside them or, for a few rows, on the calling thread, because at one
// row a region takes tens of microseconds and each extra barrier would show.
#pragma once

#include <memory>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "model/decoder_spec.hpp"
#include "model/model.hpp"
#include "model/rope.hpp"
#include "model/weights.hpp"

namespace spud::model {

struct AttentionItem;  // workspace.hpp
struct ChunkSlice;

// A loop over tiles of weight rows.
struct TileWork {
  std::int64_t tiles;
  std::int64_t k;  // columns of a tile's weights, all products together
  std::int64_t m;  // rows that are multiplied
};
struct HeadRow;  // decoder_head.cpp

class Decoder final : public Model {
 public:
  Decoder(DecoderSpec spec, DecoderWeights weights, const kernels::KernelTable& kernels);

  const HyperParameters& hyper_parameters() const noexcept override { return spec_.hyper; }
  kvcache::Geometry kv_geometry(kernels::KvType type) const noexcept override;
  std::size_t weight_bytes() const noexcept override;
  const kernels::KernelTable& kernel_table() const noexcept override { return kernels_; }
  std::shared_ptr<Workspace> make_workspace() const override;
  std::size_t workspace_bytes() const override;
  void forward(std::span<const SequenceSlice> batch, kvcache::KvCache& cache, Workspace& workspace,
               concurrency::ThreadPool& pool, std::span<float> logits,
               const ActivationObserver* observer) const override;

 private:
  struct Context;  // what one chunk's forward passes around
  struct Product {
    const Weight* weight;
    float* out;  // [m, weight->n]
  };

  // Plan (decoder_plan.cpp).
  std::int64_t plan_chunk(std::span<const SequenceSlice> batch, std::size_t& slice,
                          std::int64_t& offset, Workspace& workspace) const;
  void plan_attention(Context& context) const;
  void add_short_slices(Workspace& ws, std::span<const std::size_t> order, int num_threads) const;
  void point_at_layer(Context& context, std::int64_t layer) const;

  // Parts of a step (decoder.cpp). `m` is the number of rows.
  void forward_chunk(Context& context, std::int64_t num_rows, std::span<float> logits) const;
  void embed(Context& context, std::int64_t num_rows) const;
  void attention_block(Context& context, std::int64_t layer, std::int64_t m) const;
  void attention_output(Context& context, std::int64_t layer, std::int64_t m) const;
  void feed_forward_block(Context& context, std::int64_t layer, std::int64_t m) const;
  std::int64_t keep_logit_rows(Context& context, std::int64_t num_rows) const;

  // The head (decoder_head.cpp).
  void head(Context& context, std::int64_t m, std::span<float> logits) const;
  void head_in_tiles(Context& context, std::span<const HeadRow> rows) const;
  void head_tile(Workspace& ws, std::int64_t tile, std::int64_t first_row, std::int64_t num_rows,
                 float* out) const;
  void cap_logits(std::span<float> logits) const;

  // Between them (decoder_products.cpp): rows made ready for the products that read them, and the
  // products.
  void normalise(Context& context, const FloatVector& norm, std::span<const Product> next,
                 std::int64_t m) const;
  void prepare(Context& context, const float* x, std::int64_t width, std::span<const Product> next,
               std::int64_t m) const;
  void add_residual(Context& context, const FloatVector& bias, const FloatVector& post_norm,
                    std::int64_t m) const;
  void multiply(Context& context, std::span<const Product> products, std::int64_t m,
                concurrency::FunctionRef<void()> before) const;
  void gate_up(Context& context, std::span<const Product> inputs, std::int64_t m,
               concurrency::FunctionRef<void()> before) const;
  void run_products(Context& context, const TileWork& work, concurrency::FunctionRef<void()> before,
                    concurrency::ThreadPool::Meanwhile fetch,
                    concurrency::FunctionRef<void(std::int64_t, std::int64_t)> body) const;
  void set_strides(Workspace& ws, std::int64_t width) const;
  void prepare_row(Workspace& ws, std::span<const Product> next, std::int64_t row, const float* x,
                   std::int64_t width) const;
  void observe(Context& context, std::span<const Product> next, const float* x,
               std::int64_t m) const;
  void multiply_tiles(Workspace& ws, const Product& product, std::int64_t m,
                      std::int64_t tile_begin, std::int64_t tile_end) const;

  // Attention (decoder_attention.cpp).
  void attend(Context& context, std::int64_t layer) const;
  void finish_keys(Context& context, std::int64_t layer, const AttentionItem& item) const;
  void finish_key(Context& context, std::int64_t layer, const ChunkSlice& slice, std::int64_t row,
                  std::int64_t kv_head) const;
  // `next`: what this thread takes afterwards, or null.
  void attend_item(Context& context, std::int64_t layer, const AttentionItem& item,
                   const AttentionItem* next) const;
  // Query head `head` of a row of this slice.
  kernels::AttentionRow attention_row(Workspace& ws, std::int64_t layer, const ChunkSlice& slice,
                                      std::int64_t kv_head, std::int64_t row,
                                      std::int64_t head) const;

  DecoderSpec spec_;
  DecoderWeights weights_;
  kernels::KernelTable kernels_;
  std::vector<RopeTable> ropes_;
};

}  // namespace spud::model
