// SPDX-License-Identifier: Apache-2.0
// How keys and values get into int8 blocks (kv_block.hpp): rotated by a Walsh-Hadamard transform,
// rounded relative to the largest of the head, written to their slot. Include inside an anonymous
// namespace, after math.inl.hpp and kMaxHeadDim.

// One butterfly between lanes that differ in kBit: a + b where it is clear, a - b where it is set.
template <int kBit>
inline Vec::T butterfly(Vec::T x) {
  return Vec::fmadd(x, Vec::signs<kBit>(), Vec::swap_lanes<kBit>(x));
}

// The Walsh-Hadamard transform of kVecs vectors, a power of two, times its scale. Stage by stage
// from neighbours to halves, as the scalar definition adds.
template <int kVecs>
inline void transform(const float* x, float* out) {
  Vec::T v[kVecs];
  for (int i = 0; i < kVecs; ++i) {
    v[i] = butterfly<4>(butterfly<2>(butterfly<1>(Vec::load(x + i * Vec::kLanes))));
    if constexpr (Vec::kLanes == 16) v[i] = butterfly<Vec::kLanes / 2>(v[i]);
  }
#pragma GCC unroll 8
  for (int half = 1; half < kVecs; half *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < kVecs; ++i) {
      if ((i & half) != 0) continue;
      const Vec::T a = v[i];
      const Vec::T b = v[i + half];
      v[i] = Vec::add(a, b);
      v[i + half] = Vec::sub(a, b);
    }
  }
  const Vec::T scale = Vec::set1(kv_rotation_scale(kVecs * Vec::kLanes));
  for (int i = 0; i < kVecs; ++i) Vec::store(out + i * Vec::kLanes, Vec::mul(v[i], scale));
}

// The transform of each kv_rotation(head_dim) values, its own inverse. `x` and `out` may be the
// same.
void rotate(const float* x, std::int64_t head_dim, float* out) {
  const std::int64_t size = kv_rotation(head_dim);
  const auto all = [&](auto transform_one) {
    for (std::int64_t i = 0; i < head_dim; i += size) transform_one(x + i, out + i);
  };
  switch (size) {  // 16 divides it, and it is at most kMaxHeadDim
    case 16:
      return all(transform<16 / Vec::kLanes>);
    case 32:
      return all(transform<32 / Vec::kLanes>);
    case 64:
      return all(transform<64 / Vec::kLanes>);
    case 128:
      return all(transform<128 / Vec::kLanes>);
    default:
      return all(transform<256 / Vec::kLanes>);
  }
}

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
