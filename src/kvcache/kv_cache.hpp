// SPDX-License-Identifier: Apache-2.0
// Paged storage of keys and values: a fixed budget of pages of kernels::kPageTokens positions (all
// layers and KV heads of those positions), handed out and returned by handle. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "kernels/kv_block.hpp"
#include "kvcache/page_allocator.hpp"

namespace spud::kvcache {

struct Geometry {
  std::int64_t num_layers = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  kernels::KvType type = kernels::kDefaultKvType;

  std::size_t block_bytes() const noexcept;  // one page for one layer and KV head: K and V
  std::size_t page_bytes() const noexcept;   // one page, all layers
};

// Pages that hold `num_positions` positions of one sequence.
std::size_t pages_for(std::size_t num_positions) noexcept;

// The pages of one sequence, in order of position.
struct BlockTable {
  std::vector<PageId> pages;
};

class KvCache {
 public:
  // kInvalidArgument for an empty geometry or no pages, kResourceExhausted when the memory is not
  // there. The memory is touched, and so resident, only when a page is first used.
  [[nodiscard]] static Result<std::unique_ptr<KvCache>> create(const Geometry& geometry,
                                                               std::size_t num_pages);
  const Geometry& geometry() const noexcept { return geometry_; }
  std::size_t num_pages() const noexcept { return pages_.num_pages(); }
  std::size_t free_pages() const noexcept { return pages_.num_free(); }
  // Who holds which page; for those that share pages.
  PageAllocator& pages() noexcept { return pages_; }

  // Grows `table` to cover `num_positions`; takes nothing and returns false when pages run out.
  [[nodiscard]] bool grow(BlockTable& table, std::size_t num_positions);
  // Lets go of all pages; the table is empty afterwards.
  void release(BlockTable& table) noexcept;

  // One page, layer and KV head: filled by KvKernels::store, read by KvKernels::attention
  // (kernels/kv_block.hpp has the layouts).
  std::byte* block(PageId page, std::int64_t layer, std::int64_t kv_head) noexcept;

 private:
  using Storage = std::unique_ptr<std::byte[], void (*)(std::byte*)>;
  KvCache(const Geometry& geometry, std::size_t num_pages, Storage storage);
  Geometry geometry_;
  std::size_t page_bytes_;
  PageAllocator pages_;
  Storage storage_;
};

}  // namespace spud::kvcache
