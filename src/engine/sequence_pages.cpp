// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence_pages.hpp"

#include <algorithm>
#include <utility>

namespace spud::engine {

SequencePages::SequencePages(std::unique_ptr<kvcache::KvCache> cache, bool prefix_cache)
    : cache_(std::move(cache)),
      prefix_(prefix_cache ? std::make_unique<kvcache::PrefixCache>(*cache_) : nullptr) {}

std::int64_t SequencePages::num_total() const noexcept {
  return static_cast<std::int64_t>(cache_->num_pages());
}

std::int64_t SequencePages::page_bytes() const noexcept {
  return static_cast<std::int64_t>(cache_->geometry().page_bytes());
}

std::int64_t SequencePages::num_available() const noexcept {
  return static_cast<std::int64_t>(cache_->free_pages() + cache_->pages().num_reclaimable());
}

std::int64_t SequencePages::num_cached() const noexcept {
  return prefix_ == nullptr ? 0 : static_cast<std::int64_t>(prefix_->num_pages());
}

std::int64_t SequencePages::num_evicted() const noexcept {
  return prefix_ == nullptr ? 0 : static_cast<std::int64_t>(prefix_->num_evicted());
}

std::int64_t SequencePages::peek(const Sequence& sequence) const {
  if (prefix_ == nullptr || sequence.scores_prompt()) return 0;
  return static_cast<std::int64_t>(prefix_->peek(sequence.request().tenant, sequence.tokens()));
}

scheduler::CachedPrefix SequencePages::cached_prefix(const Sequence& sequence) const {
  scheduler::CachedPrefix found;
  if (prefix_ == nullptr || sequence.scores_prompt()) return found;
  for (const kvcache::PageId page : prefix_->find(sequence.request().tenant, sequence.tokens())) {
    ++found.pages;
    if (cache_->pages().holders(page) == 1) found.idle.push_back(page.value);
  }
  return found;
}

std::int64_t SequencePages::attach(Sequence& sequence) {
  if (prefix_ == nullptr || sequence.scores_prompt()) return 0;
  const auto covered = static_cast<std::int64_t>(prefix_->attach(
      sequence.request().tenant, sequence.tokens(), sequence.pages, sequence.prefix));
  const std::int64_t found = std::max<std::int64_t>(covered - sequence.computed, 0);
  sequence.computed += found;
  return found;
}

bool SequencePages::make_room(Sequence& sequence, std::int64_t num_tokens) {
  const auto positions = static_cast<std::size_t>(sequence.computed + num_tokens);
  while (!cache_->grow(sequence.pages, positions)) {
    const std::size_t missing =
        kvcache::pages_for(positions) - sequence.pages.pages.size() - cache_->free_pages();
    if (prefix_ == nullptr || prefix_->evict(missing) == 0) return false;
  }
  return true;
}

void SequencePages::publish(Sequence& sequence) {
  if (prefix_ == nullptr) return;
  prefix_->publish(sequence.request().tenant, sequence.tokens(),
                   static_cast<std::size_t>(sequence.computed), sequence.pages, sequence.prefix);
}

void SequencePages::release(Sequence& sequence) {
  if (prefix_ != nullptr) prefix_->touch(sequence.prefix);
  cache_->release(sequence.pages);
  sequence.restart();
}

std::int64_t SequencePages::num_exclusive(const Sequence& sequence) const {
  const kvcache::PageAllocator& pages = cache_->pages();
  return std::ranges::count_if(sequence.pages.pages,
                               [&](kvcache::PageId page) { return pages.is_exclusive(page); });
}

}  // namespace spud::engine
