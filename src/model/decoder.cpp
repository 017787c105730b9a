// SPDX-License-Identifier: Apache-2.0
#include "model/decoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "model/decoder_context.hpp"

namespace spud::model {
Decoder::Decoder(DecoderSpec spec, DecoderWeights weights, const kernels::KernelTable& kernels)
    : spec_(std::move(spec)), weights_(std::move(weights)), kernels_(kernels) {
  for (std::size_t i = 0; i < spec_.ropes.size(); ++i) {
    ropes_.emplace_back(spec_.ropes[i], weights_.rope_factors[i]);
  }
}

kvcache::Geometry Decoder::kv_geometry(kernels::KvType type) const noexcept {
  return {.num_layers = spec_.hyper.num_layers,
          .num_kv_heads = spec_.hyper.num_kv_heads,
          .head_dim = spec_.hyper.head_dim,
          .type = type};
}

std::size_t Decoder::weight_bytes() const noexcept { return weights_.arena->bytes().size(); }

std::shared_ptr<Model::Workspace> Decoder::make_workspace() const {
  const HyperParameters& h = spec_.hyper;
  const auto floats = [](std::int64_t width) {
    return AlignedBuffer(static_cast<std::size_t>(kMaxChunkRows * width) * sizeof(float));
  };
  auto ws = std::make_shared<Workspace>();
  const std::int64_t query_width = h.num_heads * h.head_dim;
  const std::int64_t kv_width = h.num_kv_heads * h.head_dim;
  ws->x = floats(h.hidden);
  ws->normed = floats(h.hidden);
  ws->projected = floats(h.hidden);
  ws->query = floats(query_width);
  ws->key = floats(kv_width);
  ws->value = floats(kv_width);
  ws->attended = floats(query_width);
  ws->gate = floats(h.ffn);
  ws->up = floats(h.ffn);
  ws->cos_sin = floats(static_cast<std::int64_t>(ropes_.size()) * h.head_dim);
  const std::int64_t widest = std::max({h.hidden, query_width, h.ffn});
  for (const auto kind : {kernels::ActivationKind::kF32, kernels::ActivationKind::kInt8}) {
    ws->prepared.rows[static_cast<std::size_t>(kind)] =
        AlignedBuffer(kMaxChunkRows * kernels_.activation_bytes(kind, widest));
  }
  return ws;
}

std::size_t Model::Workspace::bytes() const noexcept {
  std::size_t sum = 0;
  for (const AlignedBuffer* buffer : {&x, &normed, &projected, &query, &key, &value, &attended,
                                      &gate, &up, &cos_sin, &prepared.rows[0], &prepared.rows[1]}) {
    sum += buffer->size();
  }
  return sum;
}

// Its memory is not touched, so this costs nothing.
std::size_t Decoder::workspace_bytes() const { return make_workspace()->bytes(); }

void Decoder::forward(std::span<const SequenceSlice> batch, kvcache::KvCache& cache,
                      Workspace& workspace, concurrency::ThreadPool& pool, std::span<float> logits,
                      const ActivationObserver* observer) const {
  const auto kv_type = static_cast<std::size_t>(cache.geometry().type);
  Context context{.cache = cache,
                  .kv = kernels_.kv[kv_type],
                  .ws = workspace,
                  .pool = pool,
                  .observer = observer};
  std::size_t slice = 0;
  std::int64_t offset = 0;
  std::size_t logits_at = 0;
  while (slice < batch.size()) {
    const std::int64_t num_rows = plan_chunk(batch, slice, offset, workspace);
    if (num_rows == 0) break;
    const auto full_rows =
        static_cast<std::size_t>(std::ranges::count(workspace.summaries, nullptr));
    const std::size_t count = full_rows * static_cast<std::size_t>(spec_.hyper.vocabulary);
    SPUD_CHECK(logits_at + count <= logits.size());
    plan_attention(context);
    forward_chunk(context, num_rows, logits.subspan(logits_at, count));
    logits_at += count;
  }
}

void Decoder::forward_chunk(Context& context, std::int64_t num_rows,
                            std::span<float> logits) const {
  embed(context, num_rows);
  for (std::int64_t layer = 0; layer < spec_.hyper.num_layers; ++layer) {
    attention_block(context, layer, num_rows);
    // The last layer's output is wanted for few rows; a calibration wants to see all of them.
    const bool last = layer + 1 == spec_.hyper.num_layers;
    if (last && context.observer == nullptr) num_rows = keep_logit_rows(context, num_rows);
    if (num_rows == 0) return;
    attention_output(context, layer, num_rows);
    feed_forward_block(context, layer, num_rows);
  }
  if (context.observer != nullptr) num_rows = keep_logit_rows(context, num_rows);
  if (num_rows > 0) head(context, num_rows, logits);
}

void Decoder::embed(Context& context, std::int64_t num_rows) const {
  const HyperParameters& h = spec_.hyper;
  Workspace& ws = context.ws;
  const Weight& table = weights_.embedding;
  // A cosine costs about as much as 16 plain operations.
  const std::int64_t cost = h.hidden + 16 * h.head_dim * static_cast<std::int64_t>(ropes_.size());
  for_rows(context, num_rows, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* x = ws.x.floats() + row * h.hidden;
      const auto index = static_cast<std::size_t>(row);
      table.kernels->unpack_row(table.packed, table.n, table.k, ws.row_token[index], x);
      if (spec_.embedding_scale != 1) {
        for (std::int64_t i = 0; i < h.hidden; ++i) x[i] *= spec_.embedding_scale;
      }
      for (std::size_t r = 0; r < ropes_.size(); ++r) {
        const std::int64_t at = static_cast<std::int64_t>(r) * kMaxChunkRows + row;
        ropes_[r].fill(ws.row_position[index], ws.cos_sin.floats() + at * h.head_dim);
      }
    }
  });
}

void Decoder::attention_block(Context& context, std::int64_t layer, std::int64_t m) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  Workspace& ws = context.ws;
  const std::array<Product, 3> inputs{{{.weight = &weights.query, .out = ws.query.floats()},
                                       {.weight = &weights.key, .out = ws.key.floats()},
                                       {.weight = &weights.value, .out = ws.value.floats()}}};
  multiply(context, inputs, m, [&] { normalise(context, weights.attention_norm, inputs, m); });
  attend(context, layer);
}

void Decoder::attention_output(Context& context, std::int64_t layer, std::int64_t m) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  Workspace& ws = context.ws;
  const std::array<Product, 1> output{{{.weight = &weights.output, .out = ws.projected.floats()}}};
  multiply(context, output, m,
           [&] { prepare(context, ws.attended.floats(), weights.output.k, output, m); });
}

void Decoder::feed_forward_block(Context& context, std::int64_t layer, std::int64_t m) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  Workspace& ws = context.ws;
  const std::array<Product, 2> inputs{{{.weight = &weights.gate, .out = ws.gate.floats()},
                                       {.weight = &weights.up, .out = ws.up.floats()}}};
  gate_up(context, inputs, m, [&] {
    add_residual(context, weights.output_bias, weights.post_attention_norm, m);
    normalise(context, weights.ffn_norm, inputs, m);
  });
  const std::array<Product, 1> down{{{.weight = &weights.down, .out = ws.projected.floats()}}};
  multiply(context, down, m, [&] { prepare(context, ws.gate.floats(), weights.down.k, down, m); });
  add_residual(context, {}, weights.post_ffn_norm, m);
}

// Moves the rows that need logits to the front of x and attended. Returns how many.
std::int64_t Decoder::keep_logit_rows(Context& context, std::int64_t num_rows) const {
  Workspace& ws = context.ws;
  const auto kept = static_cast<std::int64_t>(ws.logit_rows.size());
  if (kept == num_rows) return kept;
  const auto move_rows = [&](float* rows, std::int64_t width) {
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t from = ws.logit_rows[static_cast<std::size_t>(i)];
      if (from == i) continue;
      std::memcpy(rows + i * width, rows + from * width,
                  static_cast<std::size_t>(width) * sizeof(float));
    }
  };
  move_rows(ws.x.floats(), spec_.hyper.hidden);
  move_rows(ws.attended.floats(), spec_.hyper.num_heads * spec_.hyper.head_dim);
  return kept;
}

}  // namespace spud::model
