// SPDX-License-Identifier: Apache-2.0
// Rows made ready for the products that read them, the products themselves, residuals.
#include <algorithm>
#include <atomic>
#include <utility>

#include "model/decoder_context.hpp"

namespace spud::model {
namespace {

std::size_t kind_index(const Weight& weight) {
  return static_cast<std::size_t>(weight.kernels->activation);
}

// Products with so few rows wait for memory, not for arithmetic. A thread then has one contiguous
// share and takes of another's only when it is done: a stream that breaks off starts again at a
// third of its speed, and what was fetched ahead lies in the wrong cache (Q4_0 with one row and two
// threads: 49 GB/s in pieces of 60 kB, 64 GB/s in halves).
constexpr std::int64_t kMemoryBoundRows = 8;
// With so many, arithmetic and memory are level: halves still (what pieces of two panels fetch
// ahead is the other thread's), but all threads make the rows ready. 16 rows: +7 % at Q4_0, +13 %
// at Q8_0.
constexpr std::int64_t kShareRows = 16;
// What a waiting thread fetches at most: half of a small second-level cache.
constexpr std::int64_t kFetchBytes = 256 << 10;

// Weight rows one thread takes at a time where arithmetic is the limit: small pieces, so that the
// threads end together.
std::int64_t tiles_per_piece(const TileWork& work, int num_threads) {
  constexpr std::int64_t kWork = 65536;
  const std::int64_t per_tile = kernels::kColumnTile * work.k * (4 + work.m) / 4;
  const std::int64_t balanced = work.tiles / (4 * num_threads);
  return std::max<std::int64_t>(1, std::min(kWork / per_tile + 1, balanced));
}

std::int64_t tiles_of(std::int64_t n) {
  return (n + kernels::kColumnTile - 1) / kernels::kColumnTile;
}

// Calls body(product, first tile, last tile) for the parts of tiles [begin, end), which are
// numbered through all products.
template <typename Product, typename Body>
void for_tiles(std::span<const Product> products, std::int64_t begin, std::int64_t end,
               const Body& body) {
  std::int64_t at = 0;
  for (const Product& product : products) {
    const std::int64_t tiles = tiles_of(product.weight->n);
    const std::int64_t first = std::max(begin - at, std::int64_t{0});
    const std::int64_t last = std::min(end - at, tiles);
    if (first < last) body(product, first, last);
    at += tiles;
  }
}

// Asks for the packed bytes of these tiles, in order, until `stop`.
void fetch_tiles(const Weight& weight, std::int64_t begin, std::int64_t end,
                 const std::atomic<bool>& stop) {
  constexpr std::int64_t kLine = 64;
  constexpr std::int64_t kLinesBetweenLooks = 16;
  const auto tile_bytes =
      static_cast<std::int64_t>(weight.kernels->packed_bytes(kernels::kColumnTile, weight.k));
  const std::byte* at = weight.packed + begin * tile_bytes;
  const std::int64_t bytes = std::min((end - begin) * tile_bytes, kFetchBytes);
  for (std::int64_t i = 0; i < bytes; i += kLinesBetweenLooks * kLine) {
    if (stop.load(std::memory_order_relaxed)) return;
    for (std::int64_t line = 0; line < kLinesBetweenLooks; ++line) {
      __builtin_prefetch(at + i + line * kLine, 0, 2);
    }
  }
}

}  // namespace

// Norm of x into `normed`, prepared for the weights that follow.
void Decoder::normalise(Context& context, const FloatVector& norm, std::span<const Product> next,
                        std::int64_t m) const {
  const HyperParameters& h = spec_.hyper;
  Workspace& ws = context.ws;
  set_strides(ws, h.hidden);
  for_rows(context, m, 3 * h.hidden, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* normed = ws.normed.floats() + row * h.hidden;
      kernels_.rms_norm(ws.x.floats() + row * h.hidden, norm.data(), h.hidden, h.rms_epsilon,
                        normed);
      prepare_row(ws, next, row, normed, h.hidden);
    }
  });
  observe(context, next, ws.normed.floats(), m);
}

void Decoder::prepare(Context& context, const float* x, std::int64_t width,
                      std::span<const Product> next, std::int64_t m) const {
  Workspace& ws = context.ws;
  set_strides(ws, width);
  for_rows(context, m, 2 * width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      prepare_row(ws, next, row, x + row * width, width);
    }
  });
  observe(context, next, x, m);
}

void Decoder::set_strides(Workspace& ws, std::int64_t width) const {
  for (const auto kind : {kernels::ActivationKind::kF32, kernels::ActivationKind::kInt8}) {
    ws.prepared.stride[static_cast<std::size_t>(kind)] = kernels_.activation_bytes(kind, width);
  }
}

void Decoder::prepare_row(Workspace& ws, std::span<const Product> next, std::int64_t row,
                          const float* x, std::int64_t width) const {
  bool done[2] = {false, false};
  for (const Product& product : next) {
    const std::size_t kind = kind_index(*product.weight);
    if (std::exchange(done[kind], true)) continue;
    kernels_.prepare(
        product.weight->kernels->activation, x, width,
        ws.prepared.rows[kind].bytes() + static_cast<std::size_t>(row) * ws.prepared.stride[kind]);
  }
}

void Decoder::observe(Context& context, std::span<const Product> next, const float* x,
                      std::int64_t m) const {
  if (context.observer == nullptr) return;
  for (const Product& product : next) {
    (*context.observer)(product.weight->name, x, m, product.weight->k);
  }
}

void Decoder::multiply_tiles(Workspace& ws, const Product& product, std::int64_t m,
                             std::int64_t tile_begin, std::int64_t tile_end) const {
  const Weight& weight = *product.weight;
  weight.kernels->matmul({.packed = weight.packed,
                          .activations = ws.prepared.rows[kind_index(weight)].bytes(),
                          .out = product.out,
                          .out_stride = weight.n,
                          .m = m,
                          .n_begin = tile_begin * kernels::kColumnTile,
                          .n_end = std::min(tile_end * kernels::kColumnTile, weight.n),
                          .n_total = weight.n,
                          .k = weight.k});
}

// All products in one region: their tiles are numbered one after the other. `before` makes the rows
// ready that they read.
void Decoder::multiply(Context& context, std::span<const Product> products, std::int64_t m,
                       concurrency::FunctionRef<void()> before) const {
  std::int64_t total = 0;
  for (const Product& product : products) total += tiles_of(product.weight->n);
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    for_tiles(products, begin, end, [&](const Product& product, std::int64_t b, std::int64_t e) {
      multiply_tiles(context.ws, product, m, b, e);
    });
  };
  const auto fetch = [&](std::int64_t begin, std::int64_t end, const std::atomic<bool>& stop) {
    for_tiles(products, begin, end, [&](const Product& product, std::int64_t b, std::int64_t e) {
      fetch_tiles(*product.weight, b, e, stop);
    });
  };
  run_products(context, {total, products.front().weight->k, m}, before, fetch, body);
}

// One loop over `work`, after `before`. Where memory is the limit, the threads that would wait for
// `before` already fetch the weights of their share.
void Decoder::run_products(Context& context, const TileWork& work,
                           concurrency::FunctionRef<void()> before,
                           concurrency::ThreadPool::Meanwhile fetch,
                           concurrency::FunctionRef<void(std::int64_t, std::int64_t)> body) const {
  ProductTime& time = context.ws.product_time;
  concurrency::SteadyTime start;
  const auto ready = [&] {
    before();
    if (time.clock != nullptr) start = time.clock->now();
  };
  if (work.m > kShareRows) {
    ready();
    context.pool.parallel_for(work.tiles, tiles_per_piece(work, context.pool.num_threads()), body);
  } else if (work.m > kMemoryBoundRows) {
    ready();
    context.pool.parallel_shares(work.tiles, 1, [] {}, fetch, body);
  } else {
    context.pool.parallel_shares(
        work.tiles, 1,
        [&] {
          context.inside_loop = true;
          ready();
          context.inside_loop = false;
        },
        fetch, body);
  }
  if (time.clock != nullptr) time.spent += time.clock->now() - start;
}

// Adds the projected rows to the residual stream, through a norm where the architecture has one.
void Decoder::add_residual(Context& context, const FloatVector& bias, const FloatVector& post_norm,
                           std::int64_t m) const {
  const HyperParameters& h = spec_.hyper;
  Workspace& ws = context.ws;
  for_rows(context, m, 2 * h.hidden, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* projected = ws.projected.floats() + row * h.hidden;
      if (!bias.empty()) kernels_.add(projected, bias.data(), h.hidden);
      if (!post_norm.empty()) {
        kernels_.rms_norm(projected, post_norm.data(), h.hidden, h.rms_epsilon, projected);
      }
      kernels_.add(ws.x.floats() + row * h.hidden, projected, h.hidden);
    }
  });
}

// gate = activation(gate) * up, tile by tile while both are in the nearest cache.
void Decoder::gate_up(Context& context, std::span<const Product> inputs, std::int64_t m,
                      concurrency::FunctionRef<void()> before) const {
  const Product& gate = inputs[0];
  const Product& up = inputs[1];
  const std::int64_t ffn = gate.weight->n;
  const auto activate =
      spec_.activation == Activation::kSilu ? kernels_.silu_mul : kernels_.gelu_tanh_mul;
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    multiply_tiles(context.ws, gate, m, begin, end);
    multiply_tiles(context.ws, up, m, begin, end);
    const std::int64_t first = begin * kernels::kColumnTile;
    const std::int64_t count = std::min(end * kernels::kColumnTile, ffn) - first;
    for (std::int64_t row = 0; row < m; ++row) {
      activate(gate.out + row * ffn + first, up.out + row * ffn + first, count);
    }
  };
  const auto fetch = [&](std::int64_t begin, std::int64_t end, const std::atomic<bool>& stop) {
    fetch_tiles(*gate.weight, begin, end, stop);
  };
  run_products(context, {tiles_of(ffn), 2 * gate.weight->k, m}, before, fetch, body);
}

}  // namespace spud::model
