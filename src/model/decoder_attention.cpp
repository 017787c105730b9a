// SPDX-License-Identifier: Apache-2.0
// From raw query/key/value products to attended values: biases, head norms, rotation, storing keys
// and values in their pages, attention. Work is shared by KV head, which owns its query heads.
#include "model/decoder_context.hpp"

namespace spud::model {

void Decoder::attend(Context& context, std::int64_t layer) const {
  Workspace& ws = context.ws;
  point_at_layer(context, layer);
  if (!ws.writers.empty()) {
    context.pool.parallel_for(
        static_cast<std::int64_t>(ws.writers.size()), 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            finish_keys(context, layer, ws.writers[static_cast<std::size_t>(i)]);
          }
        });
  }
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::size_t>(i);
      if (index < ws.num_small_items) finish_keys(context, layer, ws.items[index]);
      attend_item(context, layer, ws.items[index]);
    }
  };
  context.pool.parallel_for(static_cast<std::int64_t>(ws.items.size()), 1, work);
}

void Decoder::finish_keys(Context& context, std::int64_t layer, const AttentionItem& item) const {
  const HyperParameters& h = spec_.hyper;
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const std::size_t rope_index = spec_.layers[static_cast<std::size_t>(layer)].rope;
  const RopeTable& rope = ropes_[rope_index];
  Workspace& ws = context.ws;
  const ChunkSlice& slice = ws.slices[item.slice];
  const std::int64_t group = h.num_heads / h.num_kv_heads;
  const std::int64_t query_at = item.kv_head * group * h.head_dim;
  const std::int64_t key_at = item.kv_head * h.head_dim;
  const float* cos_sin_of_rope =
      ws.cos_sin.floats() + static_cast<std::int64_t>(rope_index) * kMaxChunkRows * h.head_dim;

  for (std::int64_t i = 0; i < item.num_queries; ++i) {
    const std::int64_t row = slice.row_begin + item.first_query + i;
    float* query = ws.query.floats() + row * h.num_heads * h.head_dim + query_at;
    float* key = ws.key.floats() + row * h.num_kv_heads * h.head_dim + key_at;
    float* value = ws.value.floats() + row * h.num_kv_heads * h.head_dim + key_at;
    if (!weights.query_bias.empty()) {
      kernels_.add(query, weights.query_bias.data() + query_at, group * h.head_dim);
    }
    if (!weights.key_bias.empty()) {
      kernels_.add(key, weights.key_bias.data() + key_at, h.head_dim);
    }
    if (!weights.value_bias.empty()) {
      kernels_.add(value, weights.value_bias.data() + key_at, h.head_dim);
    }
    if (spec_.qk_norm) {
      for (std::int64_t head = 0; head < group; ++head) {
        float* one = query + head * h.head_dim;
        kernels_.rms_norm(one, weights.query_norm.data(), h.head_dim, h.rms_epsilon, one);
      }
      kernels_.rms_norm(key, weights.key_norm.data(), h.head_dim, h.rms_epsilon, key);
    }
    const float* cos_sin = cos_sin_of_rope + row * h.head_dim;
    kernels_.rope(query, group, h.head_dim, rope.dim(), cos_sin, rope.interleaved());
    kernels_.rope(key, 1, h.head_dim, rope.dim(), cos_sin, rope.interleaved());

    const std::int64_t position = ws.row_position[static_cast<std::size_t>(row)];
    const auto page = static_cast<std::size_t>(position / kernels::kPageTokens);
    kernels_.store_kv(key, value, h.head_dim, position % kernels::kPageTokens,
                      context.cache.block(slice.pages->pages[page], layer, item.kv_head));
  }
}

void Decoder::attend_item(Context& context, std::int64_t layer, const AttentionItem& item) const {
  const HyperParameters& h = spec_.hyper;
  Workspace& ws = context.ws;
  const ChunkSlice& slice = ws.slices[item.slice];
  const std::int64_t group = h.num_heads / h.num_kv_heads;
  const std::int64_t stride = h.num_heads * h.head_dim;
  const std::int64_t at =
      (slice.row_begin + item.first_query) * stride + item.kv_head * group * h.head_dim;
  kernels_.attention({.q = ws.query.floats() + at,
                      .q_stride = stride,
                      .out = ws.attended.floats() + at,
                      .out_stride = stride,
                      .pages = ws.blocks.data() + slice.blocks_begin +
                               static_cast<std::size_t>(item.kv_head) * slice.num_pages,
                      .num_queries = item.num_queries,
                      .first_position = slice.first_position + item.first_query,
                      .window = spec_.layers[static_cast<std::size_t>(layer)].window,
                      .group = group,
                      .head_dim = h.head_dim,
                      .scale = spec_.attention_scale,
                      .softcap = spec_.attention_softcap});
}

}  // namespace spud::model
