// SPDX-License-Identifier: Apache-2.0
// Pages of keys and values that outlive their sequence, found again by what they hold: a radix tree
// whose edges are pages of token ids, one tree per salt (tenant), so that nobody learns from the
// speed of an answer what another tenant asked. Only full pages are shared, and a full page is
// never written again, so sharing needs no copy. Keys and values depend on tokens and positions
// alone and are bitwise the same however they were computed: a sequence with cached pages gives the
// same output as one without, and a page computed twice can be replaced by its twin.
//
// It has no memory of its own: it holds pages of the KV cache that nobody else needs, and gives
// them back, the longest unused first, whenever somebody does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "kvcache/kv_cache.hpp"

namespace spud::kvcache {

// How far a sequence's block table is known to the cache; belongs to the table, and starts again
// when the table is released. Its pages are held by the sequence, so their nodes stay.
struct PrefixCursor {
  std::uint32_t node = 0;     // of the last known page
  std::size_t num_pages = 0;  // known pages: the first ones of the table
};

// Engine thread only.
class PrefixCache {
 public:
  using Tokens = std::span<const std::int32_t>;

  explicit PrefixCache(KvCache& cache) : cache_(cache) {}
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // Tokens at the front of `tokens` whose pages are there: whole pages, and never the last token,
  // whose row must be computed for what comes after it.
  std::size_t peek(std::string_view salt, Tokens tokens) const;
  std::vector<PageId> find(std::string_view salt, Tokens tokens) const;  // those pages
  // Continues `table` with pages of `tokens` from the cursor on. Returns the tokens that the known
  // pages cover; the caller may go on computing there.
  std::size_t attach(std::string_view salt, Tokens tokens, BlockTable& table, PrefixCursor& cursor);
  // Makes the full pages of the first `num_computed` tokens known, from the cursor on. Where a page
  // of the same tokens is known already, the table gets that one and its own goes back.
  void publish(std::string_view salt, Tokens tokens, std::size_t num_computed, BlockTable& table,
               PrefixCursor& cursor);
  // The sequence is done with them: they count as used now.
  void touch(const PrefixCursor& cursor);
  // Gives back up to `num_pages` pages that nobody else holds. Returns how many.
  std::size_t evict(std::size_t num_pages);

  std::size_t num_pages() const noexcept { return by_key_.size(); }
  std::uint64_t num_evicted() const noexcept { return num_evicted_; }

 private:
  using NodeId = std::uint32_t;
  static constexpr NodeId kNone = UINT32_MAX;
  using PageTokens = std::array<std::int32_t, static_cast<std::size_t>(kernels::kPageTokens)>;
  struct Key {
    NodeId parent;
    PageTokens tokens;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  // A root has no page and no place in the order of use.
  struct Node {
    NodeId parent = kNone;
    PageId page;
    std::uint32_t num_children = 0;
    NodeId older = kNone;
    NodeId newer = kNone;
    const Key* key = nullptr;           // in by_key_; null for roots
    const std::string* salt = nullptr;  // in roots_; null but for roots
  };

  static Key make_key(NodeId parent, Tokens tokens, std::size_t page_idx);
  NodeId find_root(std::string_view salt) const;
  NodeId find_or_make_root(std::string_view salt);
  NodeId find_child(const Key& key) const;
  NodeId new_node();
  NodeId add_child(const Key& key, PageId page);
  void remove(NodeId id);
  void remove_root_if_empty(NodeId id);
  void link_newest(NodeId id);
  void unlink(NodeId id);

  KvCache& cache_;
  std::vector<Node> nodes_;
  std::vector<NodeId> unused_;  // places in nodes_
  std::unordered_map<Key, NodeId, KeyHash> by_key_;
  std::unordered_map<std::string, NodeId> roots_;
  NodeId oldest_ = kNone;  // in order of use; a page stands before the ones it continues
  NodeId newest_ = kNone;
  std::uint64_t num_evicted_ = 0;
};

}  // namespace spud::kvcache
