// SPDX-License-Identifier: Apache-2.0
#include "kvcache/prefix_cache.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace spud::kvcache {
namespace {

constexpr auto kPage = static_cast<std::size_t>(kernels::kPageTokens);

// Whole pages in front of the last token.
std::size_t shareable_pages(std::size_t num_tokens) {
  return num_tokens == 0 ? 0 : (num_tokens - 1) / kPage;
}

}  // namespace

PrefixCache::~PrefixCache() {
  for (const auto& [key, id] : by_key_) cache_.pages().drop_for_cache(nodes_[id].page);
}

std::size_t PrefixCache::KeyHash::operator()(const Key& key) const noexcept {
  // Multiply and fold (the mixing step of wyhash), two tokens at a time.
  std::uint64_t hash = 0x9E3779B97F4A7C15U ^ key.parent;
  for (std::size_t i = 0; i < kPage; i += 2) {
    const std::uint64_t pair = static_cast<std::uint32_t>(key.tokens[i]) |
                               std::uint64_t{static_cast<std::uint32_t>(key.tokens[i + 1])} << 32;
    const auto product = static_cast<unsigned __int128>(hash ^ pair) * 0xD6E8FEB86659FD93U;
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  return hash;
}

PrefixCache::Key PrefixCache::make_key(NodeId parent, Tokens tokens, std::size_t page_idx) {
  Key key{.parent = parent, .tokens = {}};
  std::ranges::copy(tokens.subspan(page_idx * kPage, kPage), key.tokens.begin());
  return key;
}

PrefixCache::NodeId PrefixCache::find_root(std::string_view salt) const {
  const auto found = roots_.find(std::string(salt));
  return found == roots_.end() ? kNone : found->second;
}

PrefixCache::NodeId PrefixCache::find_or_make_root(std::string_view salt) {
  const auto [at, added] = roots_.try_emplace(std::string(salt), kNone);
  if (added) {
    at->second = new_node();
    nodes_[at->second].salt = &at->first;
  }
  return at->second;
}

PrefixCache::NodeId PrefixCache::find_child(const Key& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? kNone : found->second;
}

std::size_t PrefixCache::peek(std::string_view salt, Tokens tokens) const {
  return find(salt, tokens).size() * kPage;
}

std::vector<PageId> PrefixCache::find(std::string_view salt, Tokens tokens) const {
  std::vector<PageId> pages;
  NodeId at = find_root(salt);
  while (at != kNone && pages.size() < shareable_pages(tokens.size())) {
    at = find_child(make_key(at, tokens, pages.size()));
    if (at != kNone) pages.push_back(nodes_[at].page);
  }
  return pages;
}

std::size_t PrefixCache::attach(std::string_view salt, Tokens tokens, BlockTable& table,
                                PrefixCursor& cursor) {
  PageAllocator& pages = cache_.pages();
  NodeId at = cursor.num_pages == 0 ? find_root(salt) : cursor.node;
  while (at != kNone && cursor.num_pages < shareable_pages(tokens.size())) {
    at = find_child(make_key(at, tokens, cursor.num_pages));
    if (at == kNone) break;
    const PageId page = nodes_[at].page;
    pages.hold(page);
    if (cursor.num_pages < table.pages.size()) {  // partly computed by the sequence itself
      pages.drop(table.pages[cursor.num_pages]);
      table.pages[cursor.num_pages] = page;
    } else {
      table.pages.push_back(page);
    }
    cursor = {.node = at, .num_pages = cursor.num_pages + 1};
  }
  touch(cursor);
  return cursor.num_pages * kPage;
}

void PrefixCache::publish(std::string_view salt, Tokens tokens, std::size_t num_computed,
                          BlockTable& table, PrefixCursor& cursor) {
  const std::size_t full = std::min(num_computed / kPage, table.pages.size());
  if (cursor.num_pages >= full) return;
  PageAllocator& pages = cache_.pages();
  NodeId at = cursor.num_pages == 0 ? find_or_make_root(salt) : cursor.node;
  while (cursor.num_pages < full) {
    const Key key = make_key(at, tokens, cursor.num_pages);
    PageId& own = table.pages[cursor.num_pages];
    at = find_child(key);
    if (at == kNone) {
      at = add_child(key, own);
    } else {
      pages.hold(nodes_[at].page);
      pages.drop(own);
      own = nodes_[at].page;
    }
    cursor = {.node = at, .num_pages = cursor.num_pages + 1};
  }
}

void PrefixCache::touch(const PrefixCursor& cursor) {
  if (cursor.num_pages == 0) return;
  for (NodeId at = cursor.node; nodes_[at].key != nullptr; at = nodes_[at].parent) {
    unlink(at);
    link_newest(at);
  }
}

std::size_t PrefixCache::evict(std::size_t num_pages) {
  const PageAllocator& pages = cache_.pages();
  std::size_t evicted = 0;
  NodeId at = oldest_;
  for (std::size_t left = by_key_.size();
       left > 0 && at != kNone && evicted < num_pages && pages.num_reclaimable() > 0; --left) {
    const NodeId next = nodes_[at].newer;
    if (pages.holders(nodes_[at].page) > 1) {
      unlink(at);  // in use is used now; not looked at again until all others were
      link_newest(at);
    } else if (nodes_[at].num_children == 0) {
      remove(at);
      ++evicted;
    }
    at = next;
  }
  num_evicted_ += evicted;
  return evicted;
}

PrefixCache::NodeId PrefixCache::new_node() {
  if (unused_.empty()) {
    nodes_.emplace_back();
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  const NodeId id = unused_.back();
  unused_.pop_back();
  nodes_[id] = {};
  return id;
}

PrefixCache::NodeId PrefixCache::add_child(const Key& key, PageId page) {
  const NodeId id = new_node();
  const auto [at, added] = by_key_.emplace(key, id);
  SPUD_CHECK(added);
  Node& node = nodes_[id];
  node.parent = key.parent;
  node.page = page;
  node.key = &at->first;
  ++nodes_[key.parent].num_children;
  cache_.pages().hold_for_cache(page);
  link_newest(id);
  return id;
}

void PrefixCache::remove(NodeId id) {
  unlink(id);
  const NodeId parent = nodes_[id].parent;
  cache_.pages().drop_for_cache(nodes_[id].page);
  by_key_.erase(by_key_.find(*nodes_[id].key));
  unused_.push_back(id);
  --nodes_[parent].num_children;
  remove_root_if_empty(parent);
}

void PrefixCache::remove_root_if_empty(NodeId id) {
  if (nodes_[id].salt == nullptr || nodes_[id].num_children > 0) return;
  roots_.erase(roots_.find(*nodes_[id].salt));
  unused_.push_back(id);
}

void PrefixCache::link_newest(NodeId id) {
  nodes_[id].older = newest_;
  nodes_[id].newer = kNone;
  (newest_ == kNone ? oldest_ : nodes_[newest_].newer) = id;
  newest_ = id;
}

void PrefixCache::unlink(NodeId id) {
  const Node& node = nodes_[id];
  (node.older == kNone ? oldest_ : nodes_[node.older].newer) = node.newer;
  (node.newer == kNone ? newest_ : nodes_[node.newer].older) = node.older;
}

}  // namespace spud::kvcache
