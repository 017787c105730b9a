// SPDX-License-Identifier: Apache-2.0
// Paged storage of keys and values: a fixed budget of pages of kernels::kPageTokens positions (all
// layers and KV heads of those positions), handed out and returned by handle. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "base/strong_id.hpp"

namespace spud::kvcache {

using PageId = StrongId<struct PageIdTag, std::uint32_t>;

struct Geometry {
  std::int64_t num_layers = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::size_t page_bytes() const noexcept;  // one page, all layers: F16 K and V
};

// The pages of one sequence, in order of position.
struct BlockTable {
  std::vector<PageId> pages;
};

class KvCache {
 public:
  [[nodiscard]] static Result<std::unique_ptr<KvCache>> create(const Geometry& geometry,
                                                               std::size_t num_pages);
  std::size_t num_pages() const noexcept { return num_pages_; }
  std::size_t free_pages() const noexcept { return free_.size(); }

  // Grows `table` to cover `num_positions`; takes nothing and returns false when pages run out.
  [[nodiscard]] bool grow(BlockTable& table, std::size_t num_positions);
  void release(BlockTable& table) noexcept;  // gives all pages back; the table is empty afterwards

  // K [kPageTokens, head_dim] F16 then V the same, of one page, layer and KV head.
  std::uint16_t* block(PageId page, std::int64_t layer, std::int64_t kv_head) noexcept;

 private:
  KvCache(const Geometry& geometry, std::size_t num_pages);
  Geometry geometry_;
  std::size_t num_pages_;
  std::vector<PageId> free_;  // last in, first out: recently used pages are warm
  std::unique_ptr<std::uint16_t[], void (*)(std::uint16_t*)> storage_;
};

}  // namespace spud::kvcache
