// SPDX-License-Identifier: Apache-2.0
#include "kvcache/kv_cache.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include "base/check.hpp"
#include "base/checked_math.hpp"

namespace spud::kvcache {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = 2U << 20;

// Attention reads keys and values of many layers and sequences in short runs, which costs a
// translation miss each with 4 kB pages. Pages are handed out from the bottom, so that a huge page
// is filled before the next one is touched.
std::byte* allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const auto rounded = checked_round_up<std::size_t>(bytes, alignment);  // aligned_alloc wants that
  void* memory = rounded ? std::aligned_alloc(alignment, *rounded) : nullptr;
  if (memory != nullptr && alignment == kHugePage) ::madvise(memory, *rounded, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::size_t Geometry::block_bytes() const noexcept {
  return kernels::kv_block_bytes(type, head_dim);
}

std::size_t Geometry::page_bytes() const noexcept {
  return static_cast<std::size_t>(num_layers * num_kv_heads) * block_bytes();
}

std::size_t pages_for(std::size_t num_positions) noexcept {
  constexpr auto kPage = static_cast<std::size_t>(kernels::kPageTokens);
  return num_positions / kPage + (num_positions % kPage != 0 ? 1 : 0);
}

Result<std::unique_ptr<KvCache>> KvCache::create(const Geometry& geometry, std::size_t num_pages) {
  if (geometry.num_layers < 1 || geometry.num_kv_heads < 1 || geometry.head_dim < 1) {
    return fail(ErrorCode::kInvalidArgument,
                "KV cache needs at least one layer, head and value, got {} layers, {} heads of {}",
                geometry.num_layers, geometry.num_kv_heads, geometry.head_dim);
  }
  if (num_pages < 1 || num_pages > UINT32_MAX) {
    return fail(ErrorCode::kInvalidArgument,
                "KV cache of {} pages: between 1 and 2^32 - 1 are possible; give it more or less "
                "memory",
                num_pages);
  }
  const auto bytes = checked_mul<std::size_t>(geometry.page_bytes(), num_pages);
  std::byte* memory = bytes ? allocate(*bytes) : nullptr;
  if (memory == nullptr) {
    return fail(ErrorCode::kResourceExhausted,
                "no memory for {} KV pages of {} bytes; lower the KV memory budget", num_pages,
                geometry.page_bytes());
  }
  Storage storage(memory, [](std::byte* p) { std::free(p); });
  return std::unique_ptr<KvCache>(new KvCache(geometry, num_pages, std::move(storage)));
}

KvCache::KvCache(const Geometry& geometry, std::size_t num_pages, Storage storage)
    : geometry_(geometry),
      page_bytes_(geometry.page_bytes()),
      pages_(num_pages),
      storage_(std::move(storage)) {}

bool KvCache::grow(BlockTable& table, std::size_t num_positions) {
  const std::size_t needed = pages_for(num_positions);
  if (needed <= table.pages.size()) return true;
  if (needed - table.pages.size() > pages_.num_free()) return false;
  table.pages.reserve(needed);
  while (table.pages.size() < needed) table.pages.push_back(pages_.take());
  return true;
}

void KvCache::release(BlockTable& table) noexcept {
  // From the back, so that the first page of this sequence is the next one handed out.
  for (auto page = table.pages.rbegin(); page != table.pages.rend(); ++page) pages_.drop(*page);
  table.pages.clear();
}

std::byte* KvCache::block(PageId page, std::int64_t layer, std::int64_t kv_head) noexcept {
  SPUD_DCHECK(page.value < num_pages());
  return storage_.get() + page.value * page_bytes_ +
         static_cast<std::size_t>(layer * geometry_.num_kv_heads + kv_head) *
             geometry_.block_bytes();
}

}  // namespace spud::kvcache
