// SPDX-License-Identifier: Apache-2.0
// Attention over F16 blocks (kv_block.hpp): converted to floats in registers, once for all rows of
// a tile. Include after attention.inl.hpp.

struct HalfPages {
  static constexpr KvType kType = KvType::kF16;

  static void start_row(const AttentionArgs& args, Block& block, int row, const float* q) {
    float* to = query_of(block, row);
    const Vec::T scale = Vec::set1(args.scale);
    for (std::int64_t d = 0; d < block.head_dim; d += Vec::kLanes) {
      Vec::store(to + d, Vec::mul(Vec::load(q + d), scale));
    }
  }

  static void finish_row(const AttentionArgs& /*args*/, float* /*out*/) {}

  template <int R>
  static void scores(const AttentionArgs& args, const Tile& tile, int page, Block& block) {
    const auto* keys = reinterpret_cast<const std::uint16_t*>(tile.pages[page]);
    const float* q = query_of(block, tile.row);
    const std::int64_t stride = args.head_dim;
    Vec::T acc[R][kPageVecs];
    for (int r = 0; r < R; ++r) {
      for (int j = 0; j < kPageVecs; ++j) acc[r][j] = Vec::zero();
    }
    for (std::int64_t d = 0; d < args.head_dim; ++d) {
      Vec::T k[kPageVecs];
      for (int j = 0; j < kPageVecs; ++j) {
        k[j] = Vec::load_half(keys + d * kPageTokens + j * Vec::kLanes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec::T one = Vec::set1(q[r * stride + d]);
        for (int j = 0; j < kPageVecs; ++j) acc[r][j] = Vec::fmadd(one, k[j], acc[r][j]);
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int j = 0; j < kPageVecs; ++j) {
        Vec::store(block.p[r] + page * kPageTokens + j * Vec::kLanes, acc[r][j]);
      }
    }
  }

  template <int R>
  static void add_values(const AttentionArgs& args, const Tile& tile, Ahead& ahead, Block& block) {
    constexpr int kVecs = kPageVecs;  // as many sums as the scores had
    std::int64_t d = 0;
    for (; d + kVecs * Vec::kLanes <= args.head_dim; d += kVecs * Vec::kLanes) {
      add_vectors<R, kVecs>(tile, ahead, block, d);
    }
    for (; d < args.head_dim; d += Vec::kLanes) add_vectors<R, 1>(tile, ahead, block, d);
  }

 private:
  static float* query_of(Block& block, int row) { return block.query + row * block.head_dim; }

  template <int R, int kVecs>
  static void add_vectors(const Tile& tile, Ahead& ahead, Block& block, std::int64_t d) {
    float* out = block.out_of(tile.row) + d;
    Vec::T acc[R][kVecs];
    for (int r = 0; r < R; ++r) {
      const Vec::T shrink = Vec::set1(block.shrink[r]);
      for (int j = 0; j < kVecs; ++j) {
        acc[r][j] = Vec::mul(Vec::load(out + r * block.head_dim + j * Vec::kLanes), shrink);
      }
    }
    for (int page = tile.begin; page < tile.end; ++page) {
      ahead.step();
      add_page(tile, page, block, d, acc);
    }
    for (int r = 0; r < R; ++r) {
      for (int j = 0; j < kVecs; ++j) {
        Vec::store(out + r * block.head_dim + j * Vec::kLanes, acc[r][j]);
      }
    }
  }

  // Of the page, what any of the rows sees: the others may lack a value, these have P = 0.
  template <int R, int kVecs>
  static void add_page(const Tile& tile, int page, const Block& block, std::int64_t d,
                       Vec::T (&acc)[R][kVecs]) {
    const std::int64_t head_dim = block.head_dim;
    const auto* values =
        reinterpret_cast<const std::uint16_t*>(tile.pages[page]) + head_dim * kPageTokens + d;
    std::uint32_t seen = 0;
    for (int r = 0; r < R; ++r) seen |= seen_bits(block.rows[tile.row + r], tile.span + page);
    if (seen == 0) return;
    const int end = 32 - __builtin_clz(seen);
    for (int t = __builtin_ctz(seen); t < end; ++t) {
      Vec::T v[kVecs];
      for (int j = 0; j < kVecs; ++j) {
        v[j] = Vec::load_half(values + t * head_dim + j * Vec::kLanes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec::T p = Vec::set1(block.p[r][page * kPageTokens + t]);
        for (int j = 0; j < kVecs; ++j) acc[r][j] = Vec::fmadd(p, v[j], acc[r][j]);
      }
    }
  }
};

void store_f16(const float* key, const float* value, std::int64_t head_dim, std::int64_t slot,
               std::byte* block) noexcept {
  auto* keys = reinterpret_cast<std::uint16_t*>(block);
  std::uint16_t* values = keys + head_dim * kPageTokens + slot * head_dim;
  for (std::int64_t d = 0; d < head_dim; d += Vec::kLanes) {
    std::uint16_t column[Vec::kLanes];
    Vec::store_half(column, Vec::load(key + d));
    for (int j = 0; j < Vec::kLanes; ++j) keys[(d + j) * kPageTokens + slot] = column[j];
    Vec::store_half(values + d, Vec::load(value + d));
  }
}
