// SPDX-License-Identifier: Apache-2.0
// Attention over Vec, shared by the ISA files. A block of up to kRows query rows (positions x heads
// of the group) meets the pages one after the other, each page as two small products around a
// softmax:
//
//   S[rows, 32]  = Q[rows, d] . K^T[d, 32]      K is stored transposed: no sums across lanes
//   m, l, O      = online softmax               one reduction per row and page
//   O[rows, d]  += P[rows, 32] . V[32, d]
//
// A page is converted from F16 once for all rows of the block. Every row's arithmetic is its own:
// positions it does not see have P = 0 and leave its bits alone, so how queries are split into
// blocks and calls changes nothing. Positions beyond the last row's are never read as values: they
// may hold anything.
//
// Include inside an anonymous namespace, after math.inl.hpp and
//   constexpr int kRows;       // rows of a block: kRows x kPageTokens sums fill the registers

constexpr std::int64_t kMaxHeadDim = 256;
constexpr int kPageVecs = static_cast<int>(kPageTokens / Vec::kLanes);

// The rows of one block. All arrays at constant distances: one base register addresses all rows.
struct Block {
  std::int64_t position[kRows];
  std::int64_t first[kRows];  // the first position that the row sees
  float max[kRows];
  float sum[kRows];
  float shrink[kRows];
  alignas(64) float p[kRows][kPageTokens];
  alignas(64) float q[kRows][kMaxHeadDim];
  alignas(64) float out[kRows][kMaxHeadDim];
};

// p[r][t] = q[r] . k[t] for all 32 positions: what lies beyond the written ones is masked later.
template <int R>
void scores(const std::uint16_t* keys, std::int64_t head_dim, Block& block) {
  Vec::T acc[R][kPageVecs];
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < kPageVecs; ++j) acc[r][j] = Vec::zero();
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    Vec::T k[kPageVecs];
    for (int j = 0; j < kPageVecs; ++j) {
      k[j] = Vec::load_half(keys + d * kPageTokens + j * Vec::kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec::T q = Vec::set1(block.q[r][d]);
      for (int j = 0; j < kPageVecs; ++j) acc[r][j] = Vec::fmadd(q, k[j], acc[r][j]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < kPageVecs; ++j) Vec::store(block.p[r] + j * Vec::kLanes, acc[r][j]);
  }
}

// Bits [begin, end) of a page's 32 positions.
inline std::uint32_t position_bits(std::int64_t begin, std::int64_t end) {
  const auto below = [](std::int64_t n) { return n <= 0 ? 0U : n >= 32 ? ~0U : (1U << n) - 1U; };
  return below(end) & ~below(begin);
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
inline void soften(const AttentionArgs& args, std::int64_t page_start, int r, Block& block) {
  const std::uint32_t seen =
      position_bits(block.first[r] - page_start, block.position[r] + 1 - page_start);
  float* p = block.p[r];
  block.shrink[r] = 1.0F;
  if (seen == 0) {  // this page is another row's business
    for (int j = 0; j < kPageVecs; ++j) Vec::store(p + j * Vec::kLanes, Vec::zero());
    return;
  }
  const Vec::T lowest = Vec::set1(-__builtin_inff());
  Vec::Mask lanes[kPageVecs];
  Vec::T s[kPageVecs];
  Vec::T largest = lowest;
  for (int j = 0; j < kPageVecs; ++j) {
    lanes[j] = Vec::from_bits(seen >> (j * Vec::kLanes));
    const Vec::T score = Vec::mul(Vec::load(p + j * Vec::kLanes), Vec::set1(args.scale));
    s[j] = Vec::select(lanes[j], capped(score, args.softcap), lowest);
    largest = Vec::max(s[j], largest);
  }
  const float page_max = Vec::reduce_max(largest);
  const float max = page_max > block.max[r] ? page_max : block.max[r];
  Vec::T sum = Vec::zero();
  for (int j = 0; j < kPageVecs; ++j) {
    const Vec::T e = exp_of(Vec::sub(s[j], Vec::set1(max)));
    const Vec::T seen_e = Vec::select(lanes[j], e, Vec::zero());
    Vec::store(p + j * Vec::kLanes, seen_e);
    sum = Vec::add(sum, seen_e);
  }
  if (max > block.max[r]) {  // else e^0, which is exactly the 1 that stands there
    float shrink[Vec::kLanes];
    Vec::store(shrink, exp_of(Vec::set1(block.max[r] - max)));
    block.shrink[r] = shrink[0];
    block.max[r] = max;
  }
  block.sum[r] = block.sum[r] * block.shrink[r] + Vec::reduce_add(sum);
}

// out[r] = out[r] * shrink[r] + p[r] . V over positions [begin, end) of the page, in kVecs vectors
// from dimension d on.
template <int R, int kVecs>
void add_values(const std::uint16_t* values, std::int64_t head_dim, std::int64_t d,
                std::int64_t begin, std::int64_t end, Block& block) {
  Vec::T acc[R][kVecs];
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < kVecs; ++j) {
      acc[r][j] =
          Vec::mul(Vec::load(block.out[r] + d + j * Vec::kLanes), Vec::set1(block.shrink[r]));
    }
  }
  for (std::int64_t t = begin; t < end; ++t) {
    Vec::T v[kVecs];
    for (int j = 0; j < kVecs; ++j) {
      v[j] = Vec::load_half(values + t * head_dim + d + j * Vec::kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec::T p = Vec::set1(block.p[r][t]);
      for (int j = 0; j < kVecs; ++j) acc[r][j] = Vec::fmadd(p, v[j], acc[r][j]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < kVecs; ++j) Vec::store(block.out[r] + d + j * Vec::kLanes, acc[r][j]);
  }
}

template <int R>
void attend_page(const AttentionArgs& args, std::int64_t page, Block& block) {
  const std::int64_t start = page * kPageTokens;
  const std::uint16_t* keys = args.pages[page];
  const std::uint16_t* values = keys + args.head_dim * kPageTokens;
  scores<R>(keys, args.head_dim, block);
  for (int r = 0; r < R; ++r) soften(args, start, r, block);
  // Rows are in order of position: the first sees the earliest, the last the latest.
  const std::int64_t first = block.first[0] - start;
  const std::int64_t last = block.position[R - 1] + 1 - start;
  const std::int64_t begin = first > 0 ? first : 0;
  const std::int64_t end = last < kPageTokens ? last : kPageTokens;
  constexpr int kVecs = kPageVecs;  // as many sums as the scores had
  std::int64_t d = 0;
  for (; d + kVecs * Vec::kLanes <= args.head_dim; d += kVecs * Vec::kLanes) {
    add_values<R, kVecs>(values, args.head_dim, d, begin, end, block);
  }
  for (; d < args.head_dim; d += Vec::kLanes) {
    add_values<R, 1>(values, args.head_dim, d, begin, end, block);
  }
}

template <int R>
void start_rows(const AttentionArgs& args, std::int64_t row, Block& block) {
  for (int r = 0; r < R; ++r) {
    const std::int64_t i = (row + r) / args.group;
    const std::int64_t position = args.first_position + i;
    const std::int64_t first = args.window > 0 ? position - args.window + 1 : 0;
    const float* q = args.q + i * args.q_stride + (row + r) % args.group * args.head_dim;
    block.position[r] = position;
    block.first[r] = first > 0 ? first : 0;
    block.max[r] = -__builtin_inff();
    block.sum[r] = 0;
    for (std::int64_t d = 0; d < args.head_dim; d += Vec::kLanes) {
      Vec::store(block.q[r] + d, Vec::load(q + d));
      Vec::store(block.out[r] + d, Vec::zero());
    }
  }
}

// Rows [row, row + R) of the call, numbered position by position, head by head.
template <int R>
void attend_rows(const AttentionArgs& args, std::int64_t row) {
  Block block;
  start_rows<R>(args, row, block);
  for (std::int64_t page = block.first[0] / kPageTokens;
       page <= block.position[R - 1] / kPageTokens; ++page) {
    attend_page<R>(args, page, block);
  }
  for (int r = 0; r < R; ++r) {
    const std::int64_t i = (row + r) / args.group;
    float* out = args.out + i * args.out_stride + (row + r) % args.group * args.head_dim;
    const Vec::T inverse = Vec::set1(1.0F / block.sum[r]);
    for (std::int64_t d = 0; d < args.head_dim; d += Vec::kLanes) {
      // Adding 0 turns a -0 into 0: a page that the row does not see could have done so already.
      const Vec::T value = Vec::mul(Vec::load(block.out[r] + d), inverse);
      Vec::store(out + d, Vec::add(value, Vec::zero()));
    }
  }
}

template <int R>
void attend_last_rows(const AttentionArgs& args, std::int64_t row, std::int64_t rows) {
  if constexpr (R > 0) {
    if (rows == R) return attend_rows<R>(args, row);
    attend_last_rows<R - 1>(args, row, rows);
  }
}

void attention(const AttentionArgs& args) noexcept {
  const std::int64_t rows = args.num_queries * args.group;
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) attend_rows<kRows>(args, row);
  attend_last_rows<kRows - 1>(args, row, rows - row);
}

void store_kv(const float* key, const float* value, std::int64_t head_dim, std::int64_t slot,
              std::uint16_t* block) noexcept {
  std::uint16_t* values = block + head_dim * kPageTokens + slot * head_dim;
  for (std::int64_t d = 0; d < head_dim; d += Vec::kLanes) {
    std::uint16_t keys[Vec::kLanes];
    Vec::store_half(keys, Vec::load(key + d));
    for (int j = 0; j < Vec::kLanes; ++j) block[(d + j) * kPageTokens + slot] = keys[j];
    Vec::store_half(values + d, Vec::load(value + d));
  }
}

KernelTable with_attention(KernelTable table) noexcept {
  table.attention = &attention;
  table.store_kv = &store_kv;
  return table;
}
