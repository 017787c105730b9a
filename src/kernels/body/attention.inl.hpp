// SPDX-License-Identifier: Apache-2.0
// Attention over Vec, shared by the ISA files and by the types of stored keys and values. A block
// of rows meets the pages one after the other, each page as two small products around a softmax:
//
//   S[rows, 32]  = Q[rows, d] . K[32, d]        positions in lanes: no sums across lanes
//   m, l, O      = online softmax               reductions only where the maximum rises
//   O[rows, d]  += P[rows, 32] . V[32, d]
//
// Rows next to each other that read the same memory for a page - query heads of one KV head,
// neighbouring positions, sequences with a common prefix - take it together, up to kRows at a time
// in registers. Every row's arithmetic is its own, so how rows are split into blocks and calls, and
// who shares a page with whom, changes nothing. Slots beyond the last position that a row sees are
// never read as numbers: they may hold anything.
//
// Include inside an anonymous namespace, after math.inl.hpp and
//   constexpr int kRows;       // rows in registers: kRows x kPageTokens sums fill them
// The types follow in attention_f16.inl.hpp and attention_int8.inl.hpp:
//   struct Pages {
//     static constexpr KvType kType;
//     static void start_row(const AttentionArgs&, Block&, int row, const float* q);
//     static void finish_row(const AttentionArgs&, float* out);
//     // p[row][t] = scale * q . k[t] for rows [row, row + R) and all 32 slots
//     template <int R> static void scores(const AttentionArgs&, const std::byte*, Block&, int row);
//     // out[row] = out[row] * shrink[row] + p[row] . V for rows [row, row + R)
//     template <int R> static void add_values(const AttentionArgs&, const std::byte*,
//                                             std::int64_t page, Block&, int row);
//   };

constexpr std::int64_t kMaxHeadDim = 256;
constexpr int kPageVecs = static_cast<int>(kPageTokens / Vec::kLanes);
constexpr int kMaxBlockRows = 48;
// All rows' sums of a block: 12 kB, so that they stay in the first-level cache beside a page.
constexpr std::int64_t kBlockFloats = 3072;

// The rows in work.
struct Block {
  const AttentionRow* rows;
  int num_rows;
  std::int64_t head_dim;
  float max[kMaxBlockRows];
  float shrink[kMaxBlockRows];
  float query_scale[kMaxBlockRows];          // int8: includes the scale of the scores
  std::int32_t query_sum[2][kMaxBlockRows];  // int8
  alignas(64) float sum[kMaxBlockRows][Vec::kLanes];
  alignas(64) float p[kMaxBlockRows][kPageTokens];
  alignas(64) float out[kBlockFloats];    // [num_rows][head_dim]
  alignas(64) float query[kBlockFloats];  // [num_rows][head_dim], in the type's own form

  float* out_of(int row) { return out + row * head_dim; }
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
inline void soften(const AttentionArgs& args, std::int64_t page, int r, Block& block) {
  const std::uint32_t seen = seen_bits(block.rows[r], page);
  float* p = block.p[r];
  const Vec::T lowest = Vec::set1(-__builtin_inff());
  Vec::Mask lanes[kPageVecs];
  Vec::T s[kPageVecs];
  Vec::T largest = lowest;
  for (int j = 0; j < kPageVecs; ++j) {
    lanes[j] = Vec::from_bits(seen >> (j * Vec::kLanes));
    s[j] = Vec::select(lanes[j], capped(Vec::load(p + j * Vec::kLanes), args.softcap), lowest);
    largest = Vec::max(s[j], largest);
  }
  Vec::T sum = Vec::load(block.sum[r]);
  block.shrink[r] = 1.0F;
  if (Vec::any_above(largest, Vec::set1(block.max[r]))) {  // rare after a few pages
    const float max = Vec::reduce_max(largest);
    float shrink[Vec::kLanes];
    Vec::store(shrink, exp_of(Vec::set1(block.max[r] - max)));
    block.shrink[r] = shrink[0];
    block.max[r] = max;
    sum = Vec::mul(sum, Vec::set1(shrink[0]));
  }
  const Vec::T max = Vec::set1(block.max[r]);
  for (int j = 0; j < kPageVecs; ++j) {
    const Vec::T e = Vec::select(lanes[j], exp_of(Vec::sub(s[j], max)), Vec::zero());
    Vec::store(p + j * Vec::kLanes, e);
    sum = Vec::add(sum, e);
  }
  Vec::store(block.sum[r], sum);
}

template <typename Pages, int R>
void attend_rows(const AttentionArgs& args, const std::byte* memory, std::int64_t page,
                 Block& block, int row) {
  Pages::template scores<R>(args, memory, block, row);
  for (int r = row; r < row + R; ++r) soften(args, page, r, block);
  Pages::template add_values<R>(args, memory, page, block, row);
}

template <typename Pages, int R>
void attend_last_rows(const AttentionArgs& args, const std::byte* memory, std::int64_t page,
                      Block& block, int row, int rows) {
  if constexpr (R > 0) {
    if (rows == R) return attend_rows<Pages, R>(args, memory, page, block, row);
    attend_last_rows<Pages, R - 1>(args, memory, page, block, row, rows);
  }
}

inline bool sees(const AttentionRow& row, std::int64_t page) {
  return row.first < (page + 1) * kPageTokens && row.position >= page * kPageTokens;
}

// The pages of a sequence lie apart, and a block is over before the hardware has seen where it
// leads: the next one is asked for while this one is in work.
template <typename Pages>
void fetch_next(const AttentionRow& row, std::int64_t page, std::int64_t head_dim) {
  if (row.position < (page + 1) * kPageTokens) return;
  const std::byte* next = row.pages[page + 1];
  const auto bytes = static_cast<std::int64_t>(kv_block_bytes(Pages::kType, head_dim));
  for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i, 0, 2);
}

// All rows that see this page, in runs that read the same memory.
template <typename Pages>
void attend_page(const AttentionArgs& args, std::int64_t page, Block& block) {
  for (int row = 0; row < block.num_rows;) {
    if (!sees(block.rows[row], page)) {
      ++row;
      continue;
    }
    const std::byte* memory = block.rows[row].pages[page];
    int end = row + 1;
    while (end < block.num_rows && sees(block.rows[end], page) &&
           block.rows[end].pages[page] == memory) {
      ++end;
    }
    fetch_next<Pages>(block.rows[row], page, block.head_dim);
    for (; row + kRows <= end; row += kRows) {
      attend_rows<Pages, kRows>(args, memory, page, block, row);
    }
    attend_last_rows<Pages, kRows - 1>(args, memory, page, block, row, end - row);
    row = end;
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
  for (std::int64_t page = first / kPageTokens; page <= last / kPageTokens; ++page) {
    attend_page<Pages>(args, page, block);
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
