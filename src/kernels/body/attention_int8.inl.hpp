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
// order. Include after attention.inl.hpp.

constexpr int kHalfBits = 7;  // 128 = 2^7

// One butterfly between lanes that differ in kBit: a + b where it is clear, a - b where it is set.
template <int kBit>
inline Vec::T butterfly(Vec::T x) {
  return Vec::fmadd(x, Vec::signs<kBit>(), Vec::swap_lanes<kBit>(x));
}

// The Walsh-Hadamard transform of each kv_rotation(head_dim) values, its own inverse. `x` and `out`
// may be the same.
void rotate(const float* x, std::int64_t head_dim, float* out) {
  const std::int64_t size = kv_rotation(head_dim);
  for (std::int64_t i = 0; i < head_dim; i += Vec::kLanes) {
    Vec::T v = butterfly<4>(butterfly<2>(butterfly<1>(Vec::load(x + i))));
    if constexpr (Vec::kLanes == 16) v = butterfly<Vec::kLanes / 2>(v);
    Vec::store(out + i, v);
  }
  for (std::int64_t half = Vec::kLanes; half < size; half *= 2) {
    for (std::int64_t i = 0; i < head_dim; i += Vec::kLanes) {
      if ((i & half) != 0) continue;
      const Vec::T a = Vec::load(out + i);
      const Vec::T b = Vec::load(out + i + half);
      Vec::store(out + i, Vec::add(a, b));
      Vec::store(out + i + half, Vec::sub(a, b));
    }
  }
  const Vec::T scale = Vec::set1(kv_rotation_scale(size));
  for (std::int64_t i = 0; i < head_dim; i += Vec::kLanes) {
    Vec::store(out + i, Vec::mul(Vec::load(out + i), scale));
  }
}

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
  static void scores(const AttentionArgs& args, const std::byte* memory, Block& block, int row) {
    constexpr std::int64_t kGroup = Int8KvLayout::kKeyGroupBytes;
    const Int8KvLayout layout{args.head_dim};
    Vec::I acc[R][kPageVecs];
    for (int r = 0; r < R; ++r) {
      for (int j = 0; j < kPageVecs; ++j) acc[r][j] = Vec::zero_int();
    }
    for (int part = 0; part < 2; ++part) {
      for (int r = 0; r < R; ++r) {
        const Vec::I start = Vec::start_biased(block.query_sum[part][row + r]);
        for (int j = 0; j < kPageVecs; ++j) {
          acc[r][j] = Vec::add(Vec::shift_left<kHalfBits>(acc[r][j]), start);
        }
      }
      const std::byte* q = query_of(block, part, row);
      for (std::int64_t g = 0; g < args.head_dim / 4; ++g) {
        Vec::I k[kPageVecs];
        for (int j = 0; j < kPageVecs; ++j) {
          k[j] = Vec::load_bytes(memory + g * kGroup + 4 * j * Vec::kLanes);
        }
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vec::I four = Vec::four_bytes(q + r * args.head_dim + 4 * g);
          for (int j = 0; j < kPageVecs; ++j) acc[r][j] = Vec::dot4_biased(acc[r][j], k[j], four);
        }
      }
    }
    const auto* scales = reinterpret_cast<const std::uint16_t*>(memory + layout.key_scales());
    for (int j = 0; j < kPageVecs; ++j) {
      const Vec::T scale = Vec::load_half(scales + j * Vec::kLanes);
      for (int r = 0; r < R; ++r) {
        const Vec::T both = Vec::mul(scale, Vec::set1(block.query_scale[row + r]));
        Vec::store(block.p[row + r] + j * Vec::kLanes, Vec::mul(Vec::to_float(acc[r][j]), both));
      }
    }
  }

  template <int R>
  static void add_values(const AttentionArgs& args, const std::byte* memory, std::int64_t page,
                         Block& block, int row) {
    const Int8KvLayout layout{args.head_dim};
    const std::byte* scales = memory + layout.value_scales();
    Split split[R];
    for (int r = 0; r < R; ++r) {
      split_row(scales, seen_bits(block.rows[row + r], page), block.p[row + r], split[r]);
    }
    constexpr int kVecs = Vec::kLanes == 16 ? 2 : 1;  // 8 or 16 registers hold values
    const std::byte* values = memory + layout.values();
    std::int64_t d = 0;
    for (; d + kVecs * Vec::kLanes <= args.head_dim; d += kVecs * Vec::kLanes) {
      add_vectors<R, kVecs>(values, layout.value_group_bytes(), split, block, row, d);
    }
    for (; d < args.head_dim; d += Vec::kLanes) {
      add_vectors<R, 1>(values, layout.value_group_bytes(), split, block, row, d);
    }
  }

 private:
  // A row's probabilities of a page times the values' scales.
  struct Split {
    alignas(32) std::uint8_t part[2][kPageTokens];  // 128 * part[0] + part[1], times unit
    float unit;
  };

  static std::byte* query_of(Block& block, int part, int row) {
    return reinterpret_cast<std::byte*>(block.query) +
           (part * block.num_rows + row) * block.head_dim;
  }

  static void split_row(const std::byte* scales, std::uint32_t seen, const float* p, Split& out) {
    constexpr float kMax = 127.0F * 128.0F + 127.0F;
    Vec::T weighted[kPageVecs];
    Vec::T top = Vec::zero();
    for (int j = 0; j < kPageVecs; ++j) {
      const auto* at = reinterpret_cast<const std::uint16_t*>(scales) + j * Vec::kLanes;
      const Vec::T product = Vec::mul(Vec::load(p + j * Vec::kLanes), Vec::load_half(at));
      // An unseen slot's scale may be anything.
      weighted[j] = Vec::select(Vec::from_bits(seen >> (j * Vec::kLanes)), product, Vec::zero());
      top = Vec::max(weighted[j], top);
    }
    const float largest = Vec::reduce_max(top);
    const Vec::T inverse = Vec::set1(largest > 0 ? kMax / largest : 0.0F);
    for (int j = 0; j < kPageVecs; ++j) {
      const Vec::I x = Vec::to_int(Vec::mul(weighted[j], inverse));
      const Vec::I high = Vec::shift_right<kHalfBits>(x);
      Vec::store_bytes(out.part[0] + j * Vec::kLanes, high);
      Vec::store_bytes(out.part[1] + j * Vec::kLanes,
                       Vec::sub(x, Vec::shift_left<kHalfBits>(high)));
    }
    out.unit = largest / kMax;
  }

  // kVecs vectors of dimensions from d on: their 32 positions stay in registers for all rows.
  template <int R, int kVecs>
  static void add_vectors(const std::byte* values, std::int64_t group_bytes, const Split* split,
                          Block& block, int row, std::int64_t d) {
    constexpr int kGroups = static_cast<int>(kPageTokens / 4);
    Vec::I v[kGroups][kVecs];
    for (int g = 0; g < kGroups; ++g) {
      for (int j = 0; j < kVecs; ++j) {
        v[g][j] = Vec::load_bytes(values + g * group_bytes + 4 * (d + j * Vec::kLanes));
      }
    }
    for (int r = 0; r < R; ++r) {
      Vec::I high[kVecs];
      Vec::I low[kVecs];
      for (int j = 0; j < kVecs; ++j) high[j] = low[j] = Vec::zero_int();
      for (int g = 0; g < kGroups; ++g) {
        const Vec::I four_high = Vec::four_bytes(split[r].part[0] + 4 * g);
        const Vec::I four_low = Vec::four_bytes(split[r].part[1] + 4 * g);
        for (int j = 0; j < kVecs; ++j) {
          high[j] = Vec::dot4_small(high[j], four_high, v[g][j]);
          low[j] = Vec::dot4_small(low[j], four_low, v[g][j]);
        }
      }
      const Vec::T shrink = Vec::set1(block.shrink[row + r]);
      const Vec::T unit = Vec::set1(split[r].unit);
      float* out = block.out_of(row + r) + d;
      for (int j = 0; j < kVecs; ++j) {
        const Vec::I sum = Vec::add(Vec::shift_left<kHalfBits>(high[j]), low[j]);
        const Vec::T old = Vec::mul(Vec::load(out + j * Vec::kLanes), shrink);
        Vec::store(out + j * Vec::kLanes, Vec::fmadd(Vec::to_float(sum), unit, old));
      }
    }
  }
};

// head_dim bytes of x relative to their largest, `bias` added. Returns the F16 scale.
inline std::uint16_t quantise(const float* x, std::int64_t head_dim, std::int32_t bias,
                              std::uint8_t* out) {
  Vec::T top = Vec::zero();
  Vec::T check = Vec::zero();
  for (std::int64_t d = 0; d < head_dim; d += Vec::kLanes) {
    const Vec::T v = Vec::load(x + d);
    top = Vec::max(top, Vec::abs(v));
    check = Vec::fmadd(v, Vec::zero(), check);  // 0, or not a number
  }
  const bool finite = Vec::reduce_add(check) == 0.0F;
  std::uint16_t halves[Vec::kLanes];
  Vec::store_half(halves, Vec::set1(finite ? Vec::reduce_max(top) / 127.0F : __builtin_inff()));
  float scale[Vec::kLanes];
  Vec::store(scale, Vec::load_half(halves));
  const Vec::T inverse = Vec::set1(scale[0] > 0 && finite ? 1.0F / scale[0] : 0.0F);
  const Vec::T most = Vec::set1(127.0F);
  for (std::int64_t d = 0; d < head_dim; d += Vec::kLanes) {
    const Vec::T v = Vec::mul(Vec::load(x + d), inverse);
    const Vec::T clamped = Vec::max(Vec::min(v, most), Vec::sub(Vec::zero(), most));
    Vec::store_bytes(out + d, Vec::add(Vec::to_int(clamped), Vec::set1_int(bias)));
  }
  return halves[0];
}

void store_int8(const float* key, const float* value, std::int64_t head_dim, std::int64_t slot,
                std::byte* block) noexcept {
  const Int8KvLayout layout{head_dim};
  alignas(64) float rotated[kMaxHeadDim];
  std::uint8_t bytes[kMaxHeadDim];
  rotate(key, head_dim, rotated);
  const std::uint16_t key_scale = quantise(rotated, head_dim, 128, bytes);
  for (std::int64_t d = 0; d < head_dim; d += 4) {
    __builtin_memcpy(block + layout.key(d, slot), bytes + d, 4);
  }
  rotate(value, head_dim, rotated);
  const std::uint16_t value_scale = quantise(rotated, head_dim, 0, bytes);
  std::byte* to = block + layout.value(0, slot);
  for (std::int64_t d = 0; d < head_dim; ++d) to[4 * d] = static_cast<std::byte>(bytes[d]);
  __builtin_memcpy(block + layout.key_scales() + 2 * slot, &key_scale, 2);
  __builtin_memcpy(block + layout.value_scales() + 2 * slot, &value_scale, 2);
}

KernelTable with_attention(KernelTable table) noexcept {
  table.kv[static_cast<std::size_t>(KvType::kF16)] = {&store_f16, &attention<HalfPages>};
  table.kv[static_cast<std::size_t>(KvType::kInt8)] = {&store_int8, &attention<BytePages>};
  return table;
}
