// SPDX-License-Identifier: Apache-2.0
#include "kvcache/page_allocator.hpp"

#include "base/check.hpp"

namespace spud::kvcache {

PageAllocator::PageAllocator(std::size_t num_pages)
    : holders_(num_pages, 0), cached_(num_pages, false) {
  free_.reserve(num_pages);
  for (std::size_t i = num_pages; i > 0; --i) {
    free_.emplace_back(static_cast<std::uint32_t>(i - 1));
  }
}

bool PageAllocator::is_exclusive(PageId page) const noexcept {
  return holders_[page.value] <= (cached_[page.value] ? 2U : 1U);
}

PageId PageAllocator::take() {
  SPUD_CHECK(!free_.empty());
  const PageId page = free_.back();
  free_.pop_back();
  holders_[page.value] = 1;
  return page;
}

void PageAllocator::hold(PageId page) {
  SPUD_CHECK(page.value < holders_.size() && holders_[page.value] > 0);
  if (reclaimable(page)) --num_reclaimable_;
  ++holders_[page.value];
}

void PageAllocator::drop(PageId page) noexcept {
  SPUD_CHECK(page.value < holders_.size() &&
             holders_[page.value] > (cached_[page.value] ? 1U : 0U));
  --holders_[page.value];
  if (reclaimable(page)) ++num_reclaimable_;
  if (holders_[page.value] == 0) free_.push_back(page);
}

void PageAllocator::hold_for_cache(PageId page) {
  SPUD_CHECK(!cached_[page.value] && holders_[page.value] > 0);
  cached_[page.value] = true;
  ++holders_[page.value];
}

void PageAllocator::drop_for_cache(PageId page) noexcept {
  SPUD_CHECK(cached_[page.value]);
  if (reclaimable(page)) --num_reclaimable_;
  cached_[page.value] = false;
  drop(page);
}

}  // namespace spud::kvcache
