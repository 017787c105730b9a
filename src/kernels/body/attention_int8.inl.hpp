// SPDX-License-Identifier: Apache-2.0
// Attention over int8 blocks (kv_block.hpp) with integer products; nothing stored is converted. The
// float side becomes whole numbers of so many bits that its rounding vanishes beside that of the
// stored side:
//
//   query          q = scale * number, 15 bits with sign, one scale per row
//   probabilities  p * value scale = unit * number, 14 bits, one unit per row and span
//
// Keys, values and queries are rotated (kv_block.hpp): scores do not notice, sums of values are
// rotated back. Sums are integers, exact in any order. Include after attention.inl.hpp and
// kv_int8.inl.hpp.

struct BytePages {
  static constexpr KvType kType = KvType::kInt8;

  static void start_row(const AttentionArgs& args, Block& block, int row, const float* query) {
    constexpr float kQueryMax = 127.0F * 128.0F;
    alignas(64) float q[kMaxHeadDim];
    rotate(query, block.head_dim, q);
    Vec::T top = Vec::zero();
    for (std::int64_t d = 0; d < block.head_dim; d += Vec::kLanes) {
      top = Vec::max(top, Vec::abs(Vec::load(q + d)));
    }
    const float largest = Vec::reduce_max(top);
    const Vec::T inverse = Vec::set1(largest > 0 ? kQueryMax / largest : 0.0F);
    Vec::I sum = Vec::zero_int();
    for (std::int64_t d = 0; d < block.head_dim; d += Vec::kLanes) {
      const Vec::I x = Vec::to_int(Vec::mul(Vec::load(q + d), inverse));
      Vec::store_groups(query_of(block, row) + d / 4 * Vec::kGroupBytes, x);
      sum = Vec::add(sum, x);
    }
    block.query_sum[row] = Vec::reduce_add(sum);
    block.query_scale[row] = largest / kQueryMax * args.scale;
  }

  static void finish_row(const AttentionArgs& args, float* out) { rotate(out, args.head_dim, out); }

  template <int R>
  static void scores(const AttentionArgs& args, const Tile& tile, int page, Block& block) {
    for (int first = 0; first < kPageVecs; first += kScoreVecs) {
      score_vectors<R>(args, tile, page, first, block);
    }
  }

  template <int R>
  static void add_values(const AttentionArgs& args, const Tile& tile, Ahead& ahead, Block& block) {
    Numbers numbers[R];
    for (int r = 0; r < R; ++r) to_numbers(args, tile, r, block, numbers[r]);
    // The sums of each row and vector fill the 16 or 32 registers.
    constexpr int kVecs = Vec::kLanes == 16 && R <= 3 ? 4 : 2;
    std::int64_t d = 0;
    for (; d + kVecs * Vec::kLanes <= args.head_dim; d += kVecs * Vec::kLanes) {
      add_vectors<R, kVecs>(tile, numbers, ahead, block, d);
    }
    for (; d < args.head_dim; d += Vec::kLanes) add_vectors<R, 1>(tile, numbers, ahead, block, d);
  }

 private:
  static constexpr int kScoreVecs = 2;  // vectors of positions at a time
  static constexpr int kPageGroups = kPageTokens / 4;

  // A row's probabilities of a span times the values' scales.
  struct Numbers {
    alignas(64) std::byte groups[kSpanTokens / 4 * Vec::kGroupBytes];
    float unit;
  };

  static std::int64_t query_bytes(const Block& block) {
    return block.head_dim / 4 * Vec::kGroupBytes;
  }
  static std::byte* query_of(Block& block, int row) {
    return reinterpret_cast<std::byte*>(block.query) + row * query_bytes(block);
  }

  // R queries with kScoreVecs vectors of a page's keys, from vector `first` on.
  template <int R>
  static void score_vectors(const AttentionArgs& args, const Tile& tile, int page, int first,
                            Block& block) {
    const Int8KvLayout layout{args.head_dim};
    const std::byte* memory = tile.pages[page];
    const std::byte* keys = memory + 4 * first * Vec::kLanes;
    const std::byte* queries = query_of(block, tile.row);
    const std::int64_t stride = query_bytes(block);
    Vec::Sum sums[R][kScoreVecs];
    for (auto& row : sums) {
      for (auto& sum : row) sum = Vec::no_sum();
    }
    for (std::int64_t d = 0; d < args.head_dim; d += 4) {
      Vec::UnsignedBytes k[kScoreVecs];
      for (int j = 0; j < kScoreVecs; ++j) k[j] = Vec::load_unsigned(keys + 4 * j * Vec::kLanes);
      keys += Int8KvLayout::kKeyGroupBytes;
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec::Group query = Vec::load_group(queries + r * stride);
        for (int j = 0; j < kScoreVecs; ++j) {
          sums[r][j] = Vec::add_products(sums[r][j], k[j], query);
        }
      }
      queries += Vec::kGroupBytes;
    }
    const auto* scales = reinterpret_cast<const std::uint16_t*>(memory + layout.key_scales());
    for (int j = 0; j < kScoreVecs; ++j) {
      const std::int64_t slot = (first + j) * Vec::kLanes;
      const Vec::T scale = Vec::load_half(scales + slot);
      for (int r = 0; r < R; ++r) {
        const int row = tile.row + r;
        // Keys are stored as k + 128.
        const Vec::I bias = Vec::shift_left<7>(Vec::set1_int(block.query_sum[row]));
        const Vec::T sum = Vec::to_float(Vec::sub(Vec::total(sums[r][j]), bias));
        const Vec::T both = Vec::mul(scale, Vec::set1(block.query_scale[row]));
        Vec::store(block.p[r] + page * kPageTokens + slot, Vec::mul(sum, both));
      }
    }
  }

  static void to_numbers(const AttentionArgs& args, const Tile& tile, int r, Block& block,
                         Numbers& out) {
    constexpr float kMax = 127.0F * 128.0F + 127.0F;
    const Int8KvLayout layout{args.head_dim};
    float* p = block.p[r];
    Vec::T top = Vec::zero();
    for (int page = tile.begin; page < tile.end; ++page) {
      const std::byte* scales = tile.pages[page] + layout.value_scales();
      const std::uint32_t seen = seen_bits(block.rows[tile.row + r], tile.span + page);
      for (int j = 0; j < kPageVecs; ++j) {
        float* at = p + page * kPageTokens + j * Vec::kLanes;
        const auto* scale = reinterpret_cast<const std::uint16_t*>(scales) + j * Vec::kLanes;
        const Vec::T product = Vec::mul(Vec::load(at), Vec::load_half(scale));
        // An unseen slot's scale may be anything.
        const Vec::Mask lanes = Vec::from_bits(seen >> (j * Vec::kLanes));
        const Vec::T weighted = Vec::select(lanes, product, Vec::zero());
        Vec::store(at, weighted);
        top = Vec::max(weighted, top);
      }
    }
    const float largest = Vec::reduce_max(top);
    const Vec::T inverse = Vec::set1(largest > 0 ? kMax / largest : 0.0F);
    const std::int64_t end = tile.end * kPageTokens;
    for (std::int64_t t = tile.begin * kPageTokens; t < end; t += Vec::kLanes) {
      const Vec::I x = Vec::to_int(Vec::mul(Vec::load(p + t), inverse));
      Vec::store_groups(out.groups + t / 4 * Vec::kGroupBytes, x);
    }
    out.unit = largest / kMax;
  }

  // kVecs vectors of dimensions from d on.
  template <int R, int kVecs>
  static void add_vectors(const Tile& tile, const Numbers* numbers, Ahead& ahead, Block& block,
                          std::int64_t d) {
    const Int8KvLayout layout{block.head_dim};
    Vec::Sum sums[R][kVecs];
    for (auto& row : sums) {
      for (auto& sum : row) sum = Vec::no_sum();
    }
    for (int page = tile.begin; page < tile.end; ++page) {
      const std::byte* values = tile.pages[page] + layout.values() + 4 * d;
      const std::byte* p = numbers->groups + page * kPageGroups * Vec::kGroupBytes;
      ahead.step();
#pragma GCC unroll 1
      for (int group = 0; group < kPageGroups; ++group) {
        Vec::SignedBytes v[kVecs];
        for (int j = 0; j < kVecs; ++j) v[j] = Vec::load_signed(values + 4 * j * Vec::kLanes);
        values += layout.value_group_bytes();
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vec::Group four = Vec::load_group(p + r * sizeof(Numbers));
          for (int j = 0; j < kVecs; ++j) sums[r][j] = Vec::add_products(sums[r][j], v[j], four);
        }
        p += Vec::kGroupBytes;
      }
    }
    for (int r = 0; r < R; ++r) {
      const Vec::T shrink = Vec::set1(block.shrink[r]);
      const Vec::T unit = Vec::set1(numbers[r].unit);
      float* out = block.out_of(tile.row + r) + d;
      for (int j = 0; j < kVecs; ++j) {
        const Vec::T sum = Vec::to_float(Vec::total(sums[r][j]));
        const Vec::T old = Vec::mul(Vec::load(out + j * Vec::kLanes), shrink);
        Vec::store(out + j * Vec::kLanes, Vec::fmadd(sum, unit, old));
      }
    }
  }
};

KernelTable with_attention(KernelTable table) noexcept {
  table.kv[static_cast<std::size_t>(KvType::kF16)] = {&store_f16, &attention<HalfPages>};
  table.kv[static_cast<std::size_t>(KvType::kInt8)] = {&store_int8, &attention<BytePages>};
  return table;
}
