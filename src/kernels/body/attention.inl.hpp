// SPDX-License-Identifier: Apache-2.0
// Attention over Vec, shared by the ISA files and by the types of stored keys and values. A block
// of rows meets the pages, a *span* of four after the other, each span as two small products around
// a softmax:
//
//   S[rows, 128]  = Q[rows, d] . K[128, d]      positions in lanes: no sums across lanes
//   m, l, O       = online softmax              reductions only where the maximum rises
//   O[rows, d]   += P[rows, 128] . V[128, d]
//
// A softmax waits for itself from its maximum to its last sum; over a span there is enough else to
// do meanwhile. Rows next to each other that read the same memory for a span - query heads of one
// KV head, neighbouring positions, sequences with a common prefix - take it together, up to kRows
// at a time in registers. Every row's arithmetic is its own and spans begin at multiples of 128
// positions, so how rows are split into blocks and calls, and who shares pages with whom, changes
// nothing. Slots beyond the last position that a row sees are never read as numbers: they may hold
// anything.
//
// Include inside an anonymous namespace, after math.inl.hpp and
//   template <typename Pages> constexpr int kRows;  // rows whose sums fill the registers
// The types follow in attention_f16.inl.hpp and attention_int8.inl.hpp:
//   struct Pages {
//     static constexpr KvType kType;
//     static void start_row(const AttentionArgs&, Block&, int row, const float* q);
//     static void finish_row(const AttentionArgs&, float* out);
//     // p[r][32 * page + t] = scale * q[r] . k[t] for the tile's R rows and a page's 32 slots
//     template <int R> static void scores(const AttentionArgs&, const Tile&, int page, Block&);
//     // out[r] = out[r] * shrink[r] + p[r] . V for the tile's R rows and all of its pages
//     template <int R> static void add_values(const AttentionArgs&, const Tile&, Block&);
//   };

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
  float query_scale[kMaxBlockRows];          // int8: includes the scale of the scores
  std::int32_t query_sum[2][kMaxBlockRows];  // int8
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

// cap * tanh(s / cap) = cap * (1 - 2 / (e^(2s/cap) + 1))
inline Vec::T capped(Vec::T score, float softcap) {
  if (softcap <= 0) return score;
  const Vec::T e = exp_of(Vec::mul(score, Vec::set1(2.0F / softcap)));
  const Vec::T one = Vec::set1(1.0F);
  const Vec::T quotient = Vec::div(Vec::set1(2.0F), Vec::add(e, one));
  return Vec::mul(Vec::set1(softcap), Vec::sub(one, quotient));
}

// Scores to probabilities relative to the running maximum, and what the old sums shrink by.
inline void soften(const AttentionArgs& args, const Tile& tile, int r, Block& block) {
  const int row = tile.row + r;
  const std::int64_t end = tile.end * kPageTokens;
  float* p = block.p[r];
  const Vec::T lowest = Vec::set1(-__builtin_inff());
  Vec::T largest = lowest;
  for (int page = tile.begin; page < tile.end; ++page) {
    const std::uint32_t seen = seen_bits(block.rows[row], tile.span + page);
    for (int j = 0; j < kPageVecs; ++j) {
      float* at = p + page * kPageTokens + j * Vec::kLanes;
      const Vec::Mask lanes = Vec::from_bits(seen >> (j * Vec::kLanes));
      const Vec::T s = Vec::select(lanes, capped(Vec::load(at), args.softcap), lowest);
      Vec::store(at, s);
      largest = Vec::max(s, largest);
    }
  }
  Vec::T sum = Vec::load(block.sum[row]);
  block.shrink[r] = 1.0F;
  if (Vec::any_above(largest, Vec::set1(block.max[row]))) {  // rare after a few spans
    const float max = Vec::reduce_max(largest);
    float shrink[Vec::kLanes];
    Vec::store(shrink, exp_of(Vec::set1(block.max[row] - max)));
    block.shrink[r] = shrink[0];
    block.max[row] = max;
    sum = Vec::mul(sum, Vec::set1(shrink[0]));
  }
  const Vec::T max = Vec::set1(block.max[row]);
  for (std::int64_t t = tile.begin * kPageTokens; t < end; t += Vec::kLanes) {
    const Vec::T e = exp_of(Vec::sub(Vec::load(p + t), max));  // 0 for what is not seen
    Vec::store(p + t, e);
    sum = Vec::add(sum, e);
  }
  Vec::store(block.sum[row], sum);
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

template <typename Pages, int R>
void attend_rows(const AttentionArgs& args, const Tile& tile, Ahead& ahead, Block& block) {
  for (int page = tile.begin; page < tile.end; ++page) {
    ahead.step();
    Pages::template scores<R>(args, tile, page, block);
  }
  for (int r = 0; r < R; ++r) soften(args, tile, r, block);
  Pages::template add_values<R>(args, tile, ahead, block);
}

template <typename Pages, int R>
void attend_up_to(const AttentionArgs& args, const Tile& tile, int rows, Ahead& ahead,
                  Block& block) {
  if constexpr (R > 0) {
    if (rows == R) return attend_rows<Pages, R>(args, tile, ahead, block);
    attend_up_to<Pages, R - 1>(args, tile, rows, ahead, block);
  }
}

inline bool sees(const AttentionRow& row, std::int64_t span) {
  const SeenPages seen = seen_pages(row, span);
  return seen.begin < seen.end;
}

// Whether two rows may share a tile: what one of them sees is memory that the other one may read.
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

// All rows that see this span, in runs that read the same memory.
template <typename Pages>
void attend_span(const AttentionArgs& args, std::int64_t span, Block& block) {
  for (int row = 0; row < block.num_rows;) {
    if (!sees(block.rows[row], span)) {
      ++row;
      continue;
    }
    int end = row + 1;
    while (end < block.num_rows && sees(block.rows[end], span) &&
           share_pages(block.rows[row], block.rows[end], span)) {
      ++end;
    }
    Ahead ahead;
    if (sees(block.rows[row], span + kSpanPages)) {
      ahead.add(block.rows[row], span + kSpanPages);
    } else if (args.next != nullptr) {
      ahead.add(*args.next, args.next->first / kSpanTokens * kSpanPages);
    }
    while (row < end) {
      const int rows = end - row < kRows<Pages> ? end - row : kRows<Pages>;
      const Tile tile = tile_of(block, span, row, rows);
      if (ahead.step_bytes == 0)
        ahead.spread(Pages::kType, args.head_dim, 2 * (tile.end - tile.begin));
      attend_up_to<Pages, kRows<Pages>>(args, tile, rows, ahead, block);
      row += rows;
    }
  }
}

template <typename Pages>
void attend_block(const AttentionArgs& args, Block& block) {
  std::int64_t first = block.rows[0].first;
  std::int64_t last = block.rows[0].position;
  for (int r = 0; r < block.num_rows; ++r) {
    const AttentionRow& row = block.rows[r];
    first = row.first < first ? row.first : first;
    last = row.position > last ? row.position : last;
    block.max[r] = -__builtin_inff();
    Vec::store(block.sum[r], Vec::zero());
    for (std::int64_t d = 0; d < block.head_dim; d += Vec::kLanes) {
      Vec::store(block.out_of(r) + d, Vec::zero());
    }
    Pages::start_row(args, block, r, row.q);
  }
  for (std::int64_t span = first / kSpanTokens; span <= last / kSpanTokens; ++span) {
    attend_span<Pages>(args, span * kSpanPages, block);
  }
  for (int r = 0; r < block.num_rows; ++r) {
    const Vec::T inverse = Vec::set1(1.0F / Vec::reduce_add(Vec::load(block.sum[r])));
    for (std::int64_t d = 0; d < block.head_dim; d += Vec::kLanes) {
      // Adding 0 turns a -0 into 0: a position that only others see could have done so already.
      const Vec::T value = Vec::mul(Vec::load(block.out_of(r) + d), inverse);
      Vec::store(block.rows[r].out + d, Vec::add(value, Vec::zero()));
    }
    Pages::finish_row(args, block.rows[r].out);
  }
}

template <typename Pages>
void attention(const AttentionArgs& args) noexcept {
  const std::int64_t fit = kBlockFloats / args.head_dim;
  const std::int64_t step = fit < kMaxBlockRows ? fit : kMaxBlockRows;
  Block block;
  block.head_dim = args.head_dim;
  for (std::int64_t row = 0; row < args.num_rows; row += step) {
    const std::int64_t left = args.num_rows - row;
    block.rows = args.rows + row;
    block.num_rows = static_cast<int>(left < step ? left : step);
    attend_block<Pages>(args, block);
  }
}
