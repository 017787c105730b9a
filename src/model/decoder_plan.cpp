// SPDX-License-Identifier: Apache-2.0
// Cuts a batch into chunks of rows and lays out the attention work of a chunk.
#include <algorithm>

#include "base/check.hpp"
#include "model/decoder_context.hpp"

namespace spud::model {

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

// A slice of few rows is one item per KV head, which also writes its keys and values: nobody else
// reads them. A long one is cut into chunks of queries; all its keys must be there before.
void Decoder::plan_attention(Workspace& workspace) const {
  const std::int64_t num_kv_heads = spec_.hyper.num_kv_heads;
  workspace.items.clear();
  workspace.writers.clear();
  const auto add = [&](std::vector<AttentionItem>& to, std::size_t slice, std::int64_t first,
                       std::int64_t count) {
    for (std::int64_t head = 0; head < num_kv_heads; ++head) {
      to.push_back({.slice = slice, .first_query = first, .num_queries = count, .kv_head = head});
    }
  };
  for (std::size_t s = 0; s < workspace.slices.size(); ++s) {
    const ChunkSlice& slice = workspace.slices[s];
    if (slice.num_rows <= kQueryChunk) add(workspace.items, s, 0, slice.num_rows);
  }
  workspace.num_small_items = workspace.items.size();
  for (std::size_t s = 0; s < workspace.slices.size(); ++s) {
    const ChunkSlice& slice = workspace.slices[s];
    if (slice.num_rows <= kQueryChunk) continue;
    for (std::int64_t first = 0; first < slice.num_rows; first += kQueryChunk) {
      const std::int64_t count = std::min(kQueryChunk, slice.num_rows - first);
      add(workspace.writers, s, first, count);
      add(workspace.items, s, first, count);
    }
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
