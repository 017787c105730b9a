// SPDX-License-Identifier: Apache-2.0
// Attention over int8 blocks (kv_block.hpp) with byte dot products; nothing stored is converted.
// Both sides of a product must be bytes, so the float side is split into two of them, which makes
// its rounding vanish beside that of the stored side:
//
//   query          q = scale * (128 * hi + lo), 15 bits with sign, one scale per row
//   probabilities  p * value scale = unit * (128 * hi + lo), 14 bits, one unit per row and page
//
// Keys, values and queries are rotated (kv_block.hpp): scores do not notice, sums of values are
// rotated back. The sum over hi is shifted left by 7 and goes on over lo: integers, exact in any
// order. Include after attention.inl.hpp and kv_int8.inl.hpp.

constexpr int kHalfBits = 7;  // 128 = 2^7

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
    Vec::I sums[2] = {Vec::zero_int(), Vec::zero_int()};
    for (std::int64_t d = 0; d < block.head_dim; d += Vec::kLanes) {
      const Vec::I x = Vec::to_int(Vec::mul(Vec::load(q + d), inverse));
      const Vec::I high = Vec::shift_right<kHalfBits>(Vec::add(x, Vec::set1_int(64)));
      const Vec::I low = Vec::sub(x, Vec::shift_left<kHalfBits>(high));
      Vec::store_bytes(query_of(block, 0, row) + d, high);
      Vec::store_bytes(query_of(block, 1, row) + d, low);
      sums[0] = Vec::add(sums[0], high);
      sums[1] = Vec::add(sums[1], low);
    }
    for (int part = 0; part < 2; ++part) block.query_sum[part][row] = Vec::reduce_add(sums[part]);
    block.query_scale[row] = largest / kQueryMax * args.scale;
  }

  static void finish_row(const AttentionArgs& args, float* out) { rotate(out, args.head_dim, out); }

  template <int R>
  static void scores(const AttentionArgs& args, const Tile& tile, int page, Block& block) {
    const Int8KvLayout layout{args.head_dim};
    const std::byte* memory = tile.pages[page];
    Vec::I sums[R][kPageVecs];
    add_dots<R>(memory, tile.row, block, sums);
    const auto* scales = reinterpret_cast<const std::uint16_t*>(memory + layout.key_scales());
    for (int j = 0; j < kPageVecs; ++j) {
      const Vec::T scale = Vec::load_half(scales + j * Vec::kLanes);
      for (int r = 0; r < R; ++r) {
        const Vec::T both = Vec::mul(scale, Vec::set1(block.query_scale[tile.row + r]));
        Vec::store(block.p[r] + page * kPageTokens + j * Vec::kLanes,
                   Vec::mul(Vec::to_float(sums[r][j]), both));
      }
    }
  }

  template <int R>
  static void add_values(const AttentionArgs& args, const Tile& tile, Ahead& ahead, Block& block) {
    Split split[R];
    for (int r = 0; r < R; ++r) split_row(args, tile, r, block, split[r]);
    // Two sums for each row and vector fill the 16 or 32 registers.
    constexpr int kVecs = Vec::kLanes == 16 && R <= 3 ? 4 : 2;
    std::int64_t d = 0;
    for (; d + kVecs * Vec::kLanes <= args.head_dim; d += kVecs * Vec::kLanes) {
      add_vectors<R, kVecs>(tile, split, ahead, block, d);
    }
    for (; d < args.head_dim; d += Vec::kLanes) add_vectors<R, 1>(tile, split, ahead, block, d);
  }

 private:
  // A row's probabilities of a span times the values' scales.
  struct Split {
    alignas(64) std::uint8_t part[2][kSpanTokens];  // 128 * part[0] + part[1], times unit
    float unit;
  };

  static std::byte* query_of(Block& block, int part, int row) {
    return reinterpret_cast<std::byte*>(block.query) +
           (part * block.num_rows + row) * block.head_dim;
  }

  // R queries with a page's keys: both bytes of a query side by side where the registers hold their
  // sums, else one after the other.
  template <int R>
  static void add_dots(const std::byte* keys, int row, Block& block, Vec::I (&sums)[R][kPageVecs]) {
    if constexpr (Vec::kLanes == 16) {
      Vec::I both[2 * R][kPageVecs];
      dot<2, R>(keys, 0, row, block, both);
      for (int r = 0; r < R; ++r) {
        for (int j = 0; j < kPageVecs; ++j) {
          sums[r][j] = Vec::add(Vec::shift_left<kHalfBits>(both[r][j]), both[R + r][j]);
        }
      }
    } else {
      Vec::I low[R][kPageVecs];
      dot<1, R>(keys, 1, row, block, low);
      dot<1, R>(keys, 0, row, block, sums);
      for (int r = 0; r < R; ++r) {
        for (int j = 0; j < kPageVecs; ++j) {
          sums[r][j] = Vec::add(Vec::shift_left<kHalfBits>(sums[r][j]), low[r][j]);
        }
      }
    }
  }

  // kParts bytes of R queries, from byte `first` on.
  template <int kParts, int R>
  static void dot(const std::byte* keys, int first, int row, Block& block,
                  Vec::I (&acc)[kParts * R][kPageVecs]) {
    constexpr std::int64_t kGroup = Int8KvLayout::kKeyGroupBytes;
    const std::byte* q[kParts];
    for (int part = 0; part < kParts; ++part) {
      q[part] = query_of(block, first + part, row);
      for (int r = 0; r < R; ++r) {
        const Vec::I start = Vec::start_biased(block.query_sum[first + part][row + r]);
        for (int j = 0; j < kPageVecs; ++j) acc[part * R + r][j] = start;
      }
    }
    for (std::int64_t d = 0; d < block.head_dim; d += 4, keys += kGroup) {
      Vec::I k[kPageVecs];
      for (int j = 0; j < kPageVecs; ++j) k[j] = Vec::load_bytes(keys + 4 * j * Vec::kLanes);
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vec::I four = Vec::four_bytes(q[part] + r * block.head_dim + d);
          for (int j = 0; j < kPageVecs; ++j) {
            acc[part * R + r][j] = Vec::dot4_biased(acc[part * R + r][j], k[j], four);
          }
        }
      }
    }
  }

  static void split_row(const AttentionArgs& args, const Tile& tile, int r, Block& block,
                        Split& out) {
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
      const Vec::I high = Vec::shift_right<kHalfBits>(x);
      Vec::store_bytes(out.part[0] + t, high);
      Vec::store_bytes(out.part[1] + t, Vec::sub(x, Vec::shift_left<kHalfBits>(high)));
    }
    out.unit = largest / kMax;
  }

  // kVecs vectors of dimensions from d on.
  template <int R, int kVecs>
  static void add_vectors(const Tile& tile, const Split* split, Ahead& ahead, Block& block,
                          std::int64_t d) {
    const Int8KvLayout layout{block.head_dim};
    Vec::I high[R][kVecs];
    Vec::I low[R][kVecs];
    for (int r = 0; r < R; ++r) {
      for (int j = 0; j < kVecs; ++j) high[r][j] = low[r][j] = Vec::zero_int();
    }
    for (int page = tile.begin; page < tile.end; ++page) {
      const std::byte* values = tile.pages[page] + layout.values() + 4 * d;
      const std::int64_t end = (page + 1) * kPageTokens;
      ahead.step();
      for (std::int64_t t = page * kPageTokens; t < end; t += 4) {
        Vec::I v[kVecs];
        for (int j = 0; j < kVecs; ++j) v[j] = Vec::load_bytes(values + 4 * j * Vec::kLanes);
        values += layout.value_group_bytes();
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vec::I four_high = Vec::four_bytes(split[r].part[0] + t);
          const Vec::I four_low = Vec::four_bytes(split[r].part[1] + t);
          for (int j = 0; j < kVecs; ++j) {
            high[r][j] = Vec::dot4_small(high[r][j], four_high, v[j]);
            low[r][j] = Vec::dot4_small(low[r][j], four_low, v[j]);
          }
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      const Vec::T shrink = Vec::set1(block.shrink[r]);
      const Vec::T unit = Vec::set1(split[r].unit);
      float* out = block.out_of(tile.row + r) + d;
      for (int j = 0; j < kVecs; ++j) {
        const Vec::I sum = Vec::add(Vec::shift_left<kHalfBits>(high[r][j]), low[r][j]);
        const Vec::T old = Vec::mul(Vec::load(out + j * Vec::kLanes), shrink);
        Vec::store(out + j * Vec::kLanes, Vec::fmadd(Vec::to_float(sum), unit, old));
      }
    }
  }
};

KernelTable with_attention(KernelTable table) noexcept {
  table.kv[static_cast<std::size_t>(KvType::kF16)] = {&store_f16, &attention<HalfPages>};
  table.kv[static_cast<std::size_t>(KvType::kInt8)] = {&store_int8, &attention<BytePages>};
  return table;
}
