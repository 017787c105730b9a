// SPDX-License-Identifier: Apache-2.0
// What attention (attention.inl.hpp) works on: a block of rows with their sums, the span of pages
// that they meet, tiles of rows that read the same memory there, and what is fetched ahead. Include
// inside an anonymous namespace, after math.inl.hpp.

constexpr std::int64_t kMaxHeadDim = 256;
constexpr int kPageVecs = static_cast<int>(kPageTokens / Vec::kLanes);
constexpr int kSpanPages = 4;
constexpr std::int64_t kSpanTokens = kSpanPages * kPageTokens;
constexpr int kMaxBlockRows = 48;
constexpr int kMaxTileRows = 12;
// All rows' sums of a block: 12 kB, so that they stay in the first-level cache beside a span.
constexpr std::int64_t kBlockFloats = 3072;

// The rows in work.
struct Block {
  const AttentionRow* rows;
  int num_rows;
  std::int64_t head_dim;
  float max[kMaxBlockRows];
  float query_scale[kMaxBlockRows];       // int8: includes the scale of the scores
  std::int32_t query_sum[kMaxBlockRows];  // int8
  alignas(64) float sum[kMaxBlockRows][Vec::kLanes];
  alignas(64) float out[kBlockFloats];    // [num_rows][head_dim]
  alignas(64) float query[kBlockFloats];  // [num_rows][head_dim], in the type's own form
  // Of the rows of one tile and their span:
  float shrink[kMaxTileRows];
  alignas(64) float p[kMaxTileRows][kSpanTokens];

  float* out_of(int row) { return out + row * head_dim; }
};

// A few rows of a block, from `row` on, and the pages [begin, end) of a span that any of them sees.
struct Tile {
  std::int64_t span;  // its first page
  int begin;
  int end;
  int row;
  const std::byte* pages[kSpanPages];
};

// Bits [begin, end) of a page's 32 positions.
inline std::uint32_t position_bits(std::int64_t begin, std::int64_t end) {
  const auto below = [](std::int64_t n) { return n <= 0 ? 0U : n >= 32 ? ~0U : (1U << n) - 1U; };
  return below(end) & ~below(begin);
}

inline std::uint32_t seen_bits(const AttentionRow& row, std::int64_t page) {
  const std::int64_t start = page * kPageTokens;
  return position_bits(row.first - start, row.position + 1 - start);
}

// The pages of a span that a row sees: [begin, end), counted from the span's first.
struct SeenPages {
  int begin;
  int end;
};

inline SeenPages seen_pages(const AttentionRow& row, std::int64_t span) {
  const auto within = [&](std::int64_t page) {
    const std::int64_t at = page - span;
    return static_cast<int>(at < 0 ? 0 : at > kSpanPages ? kSpanPages : at);
  };
  return {within(row.first / kPageTokens), within(row.position / kPageTokens + 1)};
}

// The pages of a sequence lie apart, and a span is over before the hardware has seen where it
// leads: what comes after it is asked for meanwhile, a few lines at every step, since all at once
// would keep the loads of this one waiting.
struct Ahead {
  const std::byte* pages[kSpanPages];
  int num_pages = 0;
  std::int64_t page_bytes = 0;
  std::int64_t step_bytes = 0;
  int page = 0;
  std::int64_t at = 0;

  void add(const AttentionRow& row, std::int64_t span) {
    const SeenPages seen = seen_pages(row, span);
    for (int i = seen.begin; i < seen.end; ++i) pages[num_pages++] = row.pages[span + i];
  }
  // To be over after so many steps.
  void spread(KvType type, std::int64_t head_dim, int steps) {
    page_bytes = static_cast<std::int64_t>(kv_block_bytes(type, head_dim));
    step_bytes = (num_pages * page_bytes / steps + 63) / 64 * 64;
  }
  void step() {
    for (std::int64_t left = step_bytes; left > 0 && page < num_pages;) {
      const std::int64_t bytes = left < page_bytes - at ? left : page_bytes - at;
      const std::byte* from = pages[page] + at;
      for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
      left -= bytes;
      at += bytes;
      if (at < page_bytes) return;
      at = 0;
      ++page;
    }
  }
};

inline bool sees(const AttentionRow& row, std::int64_t span) {
  const SeenPages seen = seen_pages(row, span);
  return seen.begin < seen.end;
}

// Whether two rows read the same memory: of one sequence, or of two that see the same pages here.
// All rows of a tile are of one of these kinds: a sequence never meets a page, be it with
// probability 0, that only another one sees.
inline bool share_pages(const AttentionRow& a, const AttentionRow& b, std::int64_t span) {
  if (a.pages == b.pages) return true;
  const SeenPages seen = seen_pages(a, span);
  const SeenPages other = seen_pages(b, span);
  if (seen.begin != other.begin || seen.end != other.end) return false;
  for (int page = seen.begin; page < seen.end; ++page) {
    if (a.pages[span + page] != b.pages[span + page]) return false;
  }
  return true;
}

inline Tile tile_of(const Block& block, std::int64_t span, int row, int rows) {
  Tile tile{.span = span, .begin = kSpanPages, .end = 0, .row = row, .pages = {}};
  for (int r = row; r < row + rows; ++r) {
    const SeenPages seen = seen_pages(block.rows[r], span);
    tile.begin = seen.begin < tile.begin ? seen.begin : tile.begin;
    tile.end = seen.end > tile.end ? seen.end : tile.end;
  }
  // Those that the rows of one sequence see follow each other: none between is missing.
  for (int page = tile.begin; page < tile.end; ++page) {
    tile.pages[page] = block.rows[row].pages[span + page];
  }
  return tile;
}
