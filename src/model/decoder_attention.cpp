// SPDX-License-Identifier: Apache-2.0
// From raw query/key/value products to attended values: biases, head norms, rotation, storing keys
// and values in their pages, attention. Work is shared by KV head, which owns its query heads.
#include <algorithm>
#include <atomic>

#include "model/decoder_context.hpp"

namespace spud::model {
namespace {

// The rows of a slice that an item takes.
struct RowRange {
  std::int64_t begin;
  std::int64_t end;
};
RowRange rows_of(const AttentionItem& item, const ChunkSlice& slice) {
  const std::int64_t begin = slice.row_begin + item.first_query;
  return {begin, begin + (item.num_queries > 0 ? item.num_queries : slice.num_rows)};
}

}  // namespace

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
  // Each thread takes an item ahead of the one in work, so that it knows whose pages come next.
  std::atomic<std::size_t> taken{0};
  const std::size_t count = ws.items.size();
  const auto work = [&](std::int64_t /*begin*/, std::int64_t /*end*/) {
    std::size_t index = taken.fetch_add(1, std::memory_order_relaxed);
    while (index < count) {
      const std::size_t next = taken.fetch_add(1, std::memory_order_relaxed);
      if (index < ws.num_small_items) finish_keys(context, layer, ws.items[index]);
      attend_item(context, layer, ws.items[index], next < count ? &ws.items[next] : nullptr);
      index = next;
    }
  };
  context.pool.parallel_for(
      std::min<std::int64_t>(context.pool.num_threads(), std::ssize(ws.items)), 1, work);
}

void Decoder::finish_keys(Context& context, std::int64_t layer, const AttentionItem& item) const {
  for (const std::size_t index : item.slices) {
    const ChunkSlice& slice = context.ws.slices[index];
    const RowRange rows = rows_of(item, slice);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      finish_key(context, layer, slice, row, item.kv_head);
    }
  }
}

void Decoder::finish_key(Context& context, std::int64_t layer, const ChunkSlice& slice,
                         std::int64_t row, std::int64_t kv_head) const {
  const HyperParameters& h = spec_.hyper;
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const std::size_t rope_index = spec_.layers[static_cast<std::size_t>(layer)].rope;
  const RopeTable& rope = ropes_[rope_index];
  Workspace& ws = context.ws;
  const std::int64_t group = h.num_heads / h.num_kv_heads;
  const std::int64_t query_at = kv_head * group * h.head_dim;
  const std::int64_t key_at = kv_head * h.head_dim;
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
  const float* cos_sin = ws.cos_sin.floats() +
                         (static_cast<std::int64_t>(rope_index) * kMaxChunkRows + row) * h.head_dim;
  kernels_.rope(query, group, h.head_dim, rope.dim(), cos_sin, rope.interleaved());
  kernels_.rope(key, 1, h.head_dim, rope.dim(), cos_sin, rope.interleaved());

  const std::int64_t position = ws.row_position[static_cast<std::size_t>(row)];
  const auto page = static_cast<std::size_t>(position / kernels::kPageTokens);
  context.kv.store(key, value, h.head_dim, position % kernels::kPageTokens,
                   context.cache.block(slice.pages->pages[page], layer, kv_head));
}

kernels::AttentionRow Decoder::attention_row(Workspace& ws, std::int64_t layer,
                                             const ChunkSlice& slice, std::int64_t kv_head,
                                             std::int64_t row, std::int64_t head) const {
  const HyperParameters& h = spec_.hyper;
  const std::int64_t window = spec_.layers[static_cast<std::size_t>(layer)].window;
  const std::int64_t position = ws.row_position[static_cast<std::size_t>(row)];
  const std::int64_t at = (row * h.num_heads + head) * h.head_dim;
  return {.q = ws.query.floats() + at,
          .out = ws.attended.floats() + at,
          .pages = ws.blocks.data() + slice.blocks_begin +
                   static_cast<std::size_t>(kv_head) * slice.num_pages,
          .first = window > 0 ? std::max<std::int64_t>(position - window + 1, 0) : 0,
          .position = position};
}

void Decoder::attend_item(Context& context, std::int64_t layer, const AttentionItem& item,
                          const AttentionItem* next) const {
  const HyperParameters& h = spec_.hyper;
  Workspace& ws = context.ws;
  const std::int64_t group = h.num_heads / h.num_kv_heads;
  const auto row_of = [&](const AttentionItem& of, std::size_t index, std::int64_t row,
                          std::int64_t head) {
    return attention_row(ws, layer, ws.slices[index], of.kv_head, row, of.kv_head * group + head);
  };
  kernels::AttentionRow rows[kAttentionRows];
  kernels::AttentionRow next_row{};
  if (next != nullptr) {
    const std::size_t index = next->slices.front();
    next_row = row_of(*next, index, rows_of(*next, ws.slices[index]).begin, 0);
  }
  std::int64_t num_rows = 0;
  const auto flush = [&](const kernels::AttentionRow* after) {
    context.kv.attention({.rows = rows,
                          .num_rows = num_rows,
                          .head_dim = h.head_dim,
                          .scale = spec_.attention_scale,
                          .softcap = spec_.attention_softcap,
                          .next = after});
    num_rows = 0;
  };
  for (const std::size_t index : item.slices) {
    const RowRange range = rows_of(item, ws.slices[index]);
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      for (std::int64_t head = 0; head < group; ++head) {
        if (num_rows == kAttentionRows) flush(nullptr);
        rows[num_rows++] = row_of(item, index, row, head);
      }
    }
  }
  if (num_rows > 0) flush(next != nullptr ? &next_row : nullptr);
}

}  // namespace spud::model
