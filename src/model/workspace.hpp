// SPDX-License-Identifier: Apache-2.0
// Scratch memory of one forward: activations of at most kMaxChunkRows rows and the plan of the
// attention work. Allocated once at its full size, so a step never allocates anything large.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "concurrency/clock.hpp"
#include "kernels/kernel_table.hpp"
#include "model/model.hpp"

namespace spud::model {

// A forward works on so many rows at a time: enough that reading the weights is paid for (the
// products are compute-bound from about 20 rows), few enough that activations stay in the caches.
inline constexpr std::int64_t kMaxChunkRows = 256;
// Queries of one sequence that one attention call takes.
inline constexpr std::int64_t kQueryChunk = 32;
// Rows (query heads at positions) that are handed to the attention kernel at a time.
inline constexpr std::int64_t kAttentionRows = 96;

// 64-byte aligned, uninitialised, fixed size.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes)
      : size_((bytes + 63) / 64 * 64),
        memory_(static_cast<std::byte*>(std::aligned_alloc(64, size_)), &std::free) {
    SPUD_CHECK(memory_ != nullptr);
  }
  std::size_t size() const noexcept { return size_; }
  std::byte* bytes() noexcept { return memory_.get(); }
  float* floats() noexcept { return reinterpret_cast<float*>(memory_.get()); }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, void (*)(void*)> memory_{nullptr, &std::free};
};

// Prepared rows of each activation kind that some product wants.
struct PreparedRows {
  AlignedBuffer rows[2];
  std::size_t stride[2] = {0, 0};  // bytes of a row at the width in use
};

// Time in the loops over weights, which with many rows are what the machine's integer peak limits;
// activations that are fused into such a loop count as part of it.
struct ProductTime {
  const concurrency::Clock* clock = nullptr;  // null = not wanted
  std::chrono::nanoseconds spent{0};
};

// One slice of the chunk in work: rows [row_begin, row_begin + num_rows) of the buffers.
struct ChunkSlice {
  const TokenId* tokens = nullptr;
  const kvcache::BlockTable* pages = nullptr;
  std::int64_t first_position = 0;
  std::int64_t row_begin = 0;
  std::int64_t num_rows = 0;
  std::int64_t first_logit = 0;  // in rows of this slice
  std::size_t blocks_begin = 0;  // into Workspace::blocks, [kv_heads][num_pages]
  std::size_t num_pages = 0;
};

// One KV head's share of the attention of some slices: all rows of each, or a part of one.
struct AttentionItem {
  std::span<const std::size_t> slices;  // into Workspace::slices
  std::int64_t first_query = 0;
  std::int64_t num_queries = 0;  // of each slice; 0 = all that it has
  std::int64_t kv_head = 0;
};

class Model::Workspace {
 public:
  // Rows of activations, each buffer [kMaxChunkRows, width].
  AlignedBuffer x;          // residual stream
  AlignedBuffer normed;     // input of a group of products, as floats
  AlignedBuffer projected;  // output of the attention and feed-forward projections
  AlignedBuffer query, key, value;
  AlignedBuffer attended;
  AlignedBuffer gate, up;
  AlignedBuffer cos_sin;  // [ropes][kMaxChunkRows][dim]
  PreparedRows prepared;

  std::vector<ChunkSlice> slices;
  std::vector<std::size_t> slice_order;    // slices with common first pages stand together
  std::vector<std::int64_t> row_position;  // by row
  std::vector<TokenId> row_token;          // by row
  std::vector<AttentionItem> items;        // groups of whole short slices, then query chunks
  std::size_t num_small_items = 0;         // items that write their keys themselves
  std::vector<AttentionItem> writers;      // key/value work of the long slices
  std::vector<const std::byte*> blocks;    // this layer's blocks, see ChunkSlice
  std::vector<std::int64_t> logit_rows;
  std::vector<kernels::ExpSum> exp_sums;  // [logit rows][tiles]
  std::vector<LogitSummary*> summaries;   // by logit row; null = full logits

  ProductTime product_time;  // for the caller, who sets the clock

  std::size_t bytes() const noexcept;  // of the buffers; the rest is small
};

}  // namespace spud::model
