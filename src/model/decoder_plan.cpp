// SPDX-License-Identifier: Apache-2.0
// Cuts a batch into chunks of rows and lays out the attention work of a chunk.
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.hpp"
#include "model/decoder_context.hpp"

namespace spud::model {
namespace {

kvcache::PageId first_page(const ChunkSlice& slice) { return slice.pages->pages.front(); }

// The longer the pages that two slices have in common, the nearer they come.
void sort_by_pages(const std::vector<ChunkSlice>& slices, std::span<std::size_t> order) {
  const auto page = [](kvcache::PageId id) { return id.value; };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::ranges::lexicographical_compare(slices[a].pages->pages, slices[b].pages->pages, {},
                                                page, page);
  });
}

}  // namespace

// Takes up to kMaxChunkRows rows from (slice, offset) on and moves on past them. Returns the rows.
std::int64_t Decoder::plan_chunk(std::span<const SequenceSlice> batch, std::size_t& slice,
                                 std::int64_t& offset, Workspace& workspace) const {
  workspace.slices.clear();
  workspace.row_position.clear();
  workspace.row_token.clear();
  workspace.logit_rows.clear();
  workspace.summaries.clear();
  std::size_t num_blocks = 0;
  std::int64_t num_rows = 0;
  while (slice < batch.size() && num_rows < kMaxChunkRows) {
    const SequenceSlice& from = batch[slice];
    const auto length = static_cast<std::int64_t>(from.tokens.size());
    const std::int64_t take = std::min(length - offset, kMaxChunkRows - num_rows);
    if (take > 0) {
      ChunkSlice& part = workspace.slices.emplace_back();
      part.tokens = from.tokens.data() + offset;
      part.pages = from.pages;
      part.first_position = from.first_position + offset;
      part.row_begin = num_rows;
      part.num_rows = take;
      part.num_pages = kvcache::pages_for(static_cast<std::size_t>(part.first_position + take));
      part.blocks_begin = num_blocks;
      SPUD_CHECK(from.pages != nullptr && part.num_pages <= from.pages->pages.size());
      num_blocks += part.num_pages * static_cast<std::size_t>(spec_.hyper.num_kv_heads);
      for (std::int64_t i = 0; i < take; ++i) {
        SPUD_CHECK(part.tokens[i] >= 0 && part.tokens[i] < spec_.hyper.vocabulary);
        workspace.row_position.push_back(part.first_position + i);
        workspace.row_token.push_back(part.tokens[i]);
        if (offset + i < from.first_logit) continue;
        SPUD_CHECK(from.summary == nullptr || from.first_logit + 1 == length);
        workspace.logit_rows.push_back(num_rows + i);
        workspace.summaries.push_back(from.summary);
      }
      num_rows += take;
      offset += take;
    }
    if (offset < length) break;
    ++slice;
    offset = 0;
  }
  workspace.blocks.resize(num_blocks);
  return num_rows;
}

// A slice of few rows writes its keys and values in the item that attends: nobody else reads them.
// Such slices that have their first pages in common are taken together, so that those are read once
// for all. A long slice is cut into chunks of queries; all its keys must be there before.
void Decoder::plan_attention(Context& context) const {
  Workspace& ws = context.ws;
  ws.items.clear();
  ws.writers.clear();
  std::vector<std::size_t>& order = ws.slice_order;
  order.resize(ws.slices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_long = [&](std::size_t slice) { return ws.slices[slice].num_rows > kQueryChunk; };
  const auto long_ones = std::ranges::stable_partition(order, std::not_fn(is_long));
  const auto num_short = order.size() - long_ones.size();
  sort_by_pages(ws.slices, std::span(order).first(num_short));
  add_short_slices(ws, std::span<const std::size_t>(order).first(num_short),
                   context.pool.num_threads());
  ws.num_small_items = ws.items.size();
  for (const std::size_t& slice : long_ones) {
    const std::int64_t num_rows = ws.slices[slice].num_rows;
    for (std::int64_t first = 0; first < num_rows; first += kQueryChunk) {
      for (std::int64_t head = 0; head < spec_.hyper.num_kv_heads; ++head) {
        const AttentionItem item{.slices = {&slice, 1},
                                 .first_query = first,
                                 .num_queries = std::min(kQueryChunk, num_rows - first),
                                 .kv_head = head};
        ws.writers.push_back(item);
        ws.items.push_back(item);
      }
    }
  }
}

// Runs of slices with the same first page, cut so that all threads have work.
void Decoder::add_short_slices(Workspace& ws, std::span<const std::size_t> order,
                               int num_threads) const {
  const std::int64_t num_kv_heads = spec_.hyper.num_kv_heads;
  const auto parts = static_cast<std::size_t>((2 * num_threads + num_kv_heads - 1) / num_kv_heads);
  while (!order.empty()) {
    std::size_t run = 1;
    while (run < order.size() &&
           first_page(ws.slices[order[run]]) == first_page(ws.slices[order[0]])) {
      ++run;
    }
    const std::size_t step = (run + parts - 1) / parts;
    for (std::size_t at = 0; at < run; at += step) {
      for (std::int64_t head = 0; head < num_kv_heads; ++head) {
        ws.items.push_back(
            {.slices = order.subspan(at, std::min(step, run - at)), .kv_head = head});
      }
    }
    order = order.subspan(run);
  }
}

void Decoder::point_at_layer(Context& context, std::int64_t layer) const {
  for (const ChunkSlice& slice : context.ws.slices) {
    const std::byte** out = context.ws.blocks.data() + slice.blocks_begin;
    for (std::int64_t head = 0; head < spec_.hyper.num_kv_heads; ++head) {
      for (std::size_t page = 0; page < slice.num_pages; ++page) {
        *out++ = context.cache.block(slice.pages->pages[page], layer, head);
      }
    }
  }
}

}  // namespace spud::model
