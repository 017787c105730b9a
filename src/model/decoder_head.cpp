// SPDX-License-Identifier: Apache-2.0
// The output head. A vocabulary of 262,144 makes it the largest product of a small model, and its
// result is a megabyte a row that a greedy or top-k sampler reads once to keep a few values. For
// such rows the head is computed tile by tile and reduced while a tile is in the nearest cache.
//
// What is kept does not depend on who computed which tile: the largest logits are a set under a
// total order (value, then token), and the sums of exponentials are per tile, put together in order
// of tiles.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "kernels/log_sum_exp.hpp"
#include "model/decoder_context.hpp"
#include "model/top_logits.hpp"

namespace spud::model {
namespace {

using kernels::kLogitTile;

// Rows that a tile is computed for at a time: 32 kB of logits on the stack.
constexpr std::int64_t kHeadRows = 32;

}  // namespace

// One row of logits: all of them, or what a summary asks for.
struct HeadRow {
  float* logits = nullptr;  // null = `summary`
  LogitSummary* summary = nullptr;
  kernels::ExpSum* exp_sums = nullptr;  // by tile; null = not wanted
};

void Decoder::head(Context& context, std::int64_t m, std::span<float> logits) const {
  Workspace& ws = context.ws;
  const std::array<Product, 1> product{{{.weight = &weights_.head, .out = logits.data()}}};
  normalise(context, weights_.output_norm, product, m);
  if (std::ranges::all_of(ws.summaries, [](const LogitSummary* s) { return s == nullptr; })) {
    multiply(context, product, m, [] {});
    cap_logits(logits);
    return;
  }
  const std::int64_t vocabulary = weights_.head.n;
  const auto num_tiles = static_cast<std::size_t>((vocabulary + kLogitTile - 1) / kLogitTile);
  ws.exp_sums.resize(num_tiles * static_cast<std::size_t>(m));
  std::vector<HeadRow> rows(static_cast<std::size_t>(m));
  float* next = logits.data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    LogitSummary* summary = ws.summaries[i];
    rows[i].summary = summary;
    if (summary == nullptr) {
      rows[i].logits = next;
      next += vocabulary;
    } else if (summary->wants_log_sum_exp) {
      rows[i].exp_sums = ws.exp_sums.data() + i * num_tiles;
    }
  }
  head_in_tiles(context, rows);
  for (const HeadRow& row : rows) {
    if (row.exp_sums == nullptr) continue;
    kernels::LogSumExp sum;
    for (std::size_t tile = 0; tile < num_tiles; ++tile) sum.add(row.exp_sums[tile]);
    row.summary->log_sum_exp = sum.value();
  }
}

void Decoder::head_in_tiles(Context& context, std::span<const HeadRow> rows) const {
  const std::int64_t vocabulary = weights_.head.n;
  const std::int64_t num_tiles = (vocabulary + kLogitTile - 1) / kLogitTile;
  for (const HeadRow& row : rows) {
    if (row.summary != nullptr) row.summary->top.clear();
  }
  std::mutex mutex;  // guards every summary's top
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    alignas(64) float logits[kHeadRows * kLogitTile];
    std::vector<TopLogits> tops(rows.size());
    {
      const std::scoped_lock lock(mutex);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].summary != nullptr) tops[i] = TopLogits(*rows[i].summary);
      }
    }
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t column = tile * kLogitTile;
      const std::int64_t columns = std::min(kLogitTile, vocabulary - column);
      for (std::int64_t first = 0; first < std::ssize(rows); first += kHeadRows) {
        const std::int64_t count = std::min(kHeadRows, std::ssize(rows) - first);
        head_tile(context.ws, tile, first, count, logits);
        for (std::int64_t i = 0; i < count; ++i) {
          const auto index = static_cast<std::size_t>(first + i);
          const HeadRow& row = rows[index];
          const float* x = logits + i * kLogitTile;
          if (row.logits != nullptr) {
            std::copy_n(x, columns, row.logits + column);
            continue;
          }
          tops[index].add(kernels_, x, columns, static_cast<TokenId>(column));
          if (row.exp_sums != nullptr) row.exp_sums[tile] = kernels_.exp_sum(x, columns);
        }
      }
    }
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].summary != nullptr) tops[i].merge_into(rows[i].summary->top);
    }
  };
  const TileWork work{num_tiles, weights_.head.k * (kLogitTile / kernels::kColumnTile),
                      std::ssize(rows)};
  const auto no_fetch = [](std::int64_t, std::int64_t, const std::atomic<bool>&) {};
  run_products(context, work, [] {}, no_fetch, body);
}

// Logits of one tile, `num_rows` rows of kLogitTile.
void Decoder::head_tile(Workspace& ws, std::int64_t tile, std::int64_t first_row,
                        std::int64_t num_rows, float* out) const {
  const Weight& head = weights_.head;
  const auto kind = static_cast<std::size_t>(head.kernels->activation);
  const std::int64_t column = tile * kLogitTile;
  head.kernels->matmul(
      {.packed = head.packed,
       .activations = ws.prepared.rows[kind].bytes() +
                      static_cast<std::size_t>(first_row) * ws.prepared.stride[kind],
       .out = out - column,  // it writes columns [column, ...)
       .out_stride = kLogitTile,
       .m = num_rows,
       .n_begin = column,
       .n_end = std::min(column + kLogitTile, head.n),
       .n_total = head.n,
       .k = head.k});
  cap_logits({out, static_cast<std::size_t>(num_rows * kLogitTile)});
}

void Decoder::cap_logits(std::span<float> logits) const {
  const float cap = spec_.final_softcap;
  if (cap == 0) return;
  for (float& logit : logits) logit = cap * std::tanh(logit / cap);
}

}  // namespace spud::model
