// SPDX-License-Identifier: Apache-2.0
// Which pages are free and who holds the others. A page may have several holders: the sequences
// that read it and the prefix cache, which keeps it for those to come. It is free when the last one
// lets go. Pages that only the prefix cache holds are counted, because they can be had back at any
// time: to whoever needs pages they are as good as free. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/strong_id.hpp"

namespace spud::kvcache {

using PageId = StrongId<struct PageIdTag, std::uint32_t>;

// Not thread-safe.
class PageAllocator {
 public:
  explicit PageAllocator(std::size_t num_pages);

  std::size_t num_pages() const noexcept { return holders_.size(); }
  std::size_t num_free() const noexcept { return free_.size(); }
  // Held by the prefix cache and nobody else.
  std::size_t num_reclaimable() const noexcept { return num_reclaimable_; }
  std::uint32_t holders(PageId page) const noexcept { return holders_[page.value]; }
  // Nobody would hold it, or only the prefix cache, if one holder let go.
  bool is_exclusive(PageId page) const noexcept;

  PageId take();  // the caller holds it; one must be free
  void hold(PageId page);
  void drop(PageId page) noexcept;
  // The prefix cache's own hold, on top of the others.
  void hold_for_cache(PageId page);
  void drop_for_cache(PageId page) noexcept;

 private:
  bool reclaimable(PageId page) const noexcept {
    return cached_[page.value] && holders_[page.value] == 1;
  }

  std::vector<PageId> free_;            // last in, first out: recently used pages are warm
  std::vector<std::uint32_t> holders_;  // by page; 0 = free
  std::vector<bool> cached_;            // by page: one of the holders is the prefix cache
  std::size_t num_reclaimable_ = 0;
};

}  // namespace spud::kvcache
