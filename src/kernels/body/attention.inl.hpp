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
// Include inside an anonymous namespace, after attention_state.inl.hpp and
//   template <typename Pages> constexpr int kRows;  // rows whose sums fill the registers
// The types follow in attention_f16.inl.hpp and attention_int8.inl.hpp:
//   struct Pages {
//     static constexpr KvType kType;
//     static void start_row(const AttentionArgs&, Block&, int row, const float* q);
//     static void finish_row(const AttentionArgs&, float* out);
//     // p[r][32 * page + t] = scale * q[r] . k[t] for the tile's R rows and a page's 32 slots
//     template <int R> static void scores(const AttentionArgs&, const Tile&, int page, Block&);
//     // out[r] = out[r] * shrink[r] + p[r] . V for the tile's R rows and all of its pages
//     template <int R>
//     static void add_values(const AttentionArgs&, const Tile&, Ahead&, Block&);
//   };

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
           share_pages(block.rows[row], block.rows[end], span) &&
           share_pages(block.rows[end - 1], block.rows[end], span)) {
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
