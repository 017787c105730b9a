// SPDX-License-Identifier: Apache-2.0
// The 8-lane vector that the shared bodies are written against. Include inside the anonymous
// namespace of an AVX2 file; body/vec_avx512.inl.hpp is its 16-lane twin.

struct Vec {
  using T = __m256;
  using Mask = __m256i;  // all bits of a lane
  static constexpr std::int64_t kLanes = 8;

  static Mask first(std::int64_t n) {
    const int count = static_cast<int>(n > 8 ? 8 : n < 0 ? 0 : n);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Mask from_bits(std::uint32_t bits) {
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i all = _mm256_set1_epi32(static_cast<int>(bits & 0xFFU));
    return _mm256_cmpeq_epi32(_mm256_and_si256(all, lane), lane);
  }

  static T zero() { return _mm256_setzero_ps(); }
  static T set1(float x) { return _mm256_set1_ps(x); }
  static T load(const float* at) { return _mm256_loadu_ps(at); }
  static T load(Mask lanes, const float* at) { return _mm256_maskload_ps(at, lanes); }
  static T load_half(const std::uint16_t* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static void store(float* at, T x) { _mm256_storeu_ps(at, x); }
  static void store(Mask lanes, float* at, T x) { _mm256_maskstore_ps(at, lanes, x); }
  static void store_half(std::uint16_t* at, T x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  static T add(T a, T b) { return _mm256_add_ps(a, b); }
  static T sub(T a, T b) { return _mm256_sub_ps(a, b); }
  static T mul(T a, T b) { return _mm256_mul_ps(a, b); }
  static T div(T a, T b) { return _mm256_div_ps(a, b); }
  static T max(T a, T b) { return _mm256_max_ps(a, b); }
  static T min(T a, T b) { return _mm256_min_ps(a, b); }
  static T fmadd(T a, T b, T c) { return _mm256_fmadd_ps(a, b, c); }
  static T fnmadd(T a, T b, T c) { return _mm256_fnmadd_ps(a, b, c); }
  static T fmsub(T a, T b, T c) { return _mm256_fmsub_ps(a, b, c); }
  static T fmaddsub(T a, T b, T c) { return _mm256_fmaddsub_ps(a, b, c); }
  static T select(Mask lanes, T yes, T no) {
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(lanes));
  }
  static std::uint32_t at_least_bits(Mask lanes, T a, T b) {
    const T above = _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ), _mm256_castsi256_ps(lanes));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(above));
  }
  static std::uint32_t equal_bits(Mask lanes, T a, T b) {
    const T equal = _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), _mm256_castsi256_ps(lanes));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(equal));
  }

  static T round(T x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // Two steps, so that results below the normal range come out right.
  static T times_power_of_two(T x, T n) {
    const __m256i exponent = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(exponent, 1);
    const auto power = [](__m256i e) {
      return _mm256_castsi256_ps(
          _mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
    };
    return mul(mul(x, power(half)), power(_mm256_sub_epi32(exponent, half)));
  }
  static float reduce_add(T x) {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
  }
  static float reduce_max(T x) {
    __m128 max = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    max = _mm_max_ps(max, _mm_movehl_ps(max, max));
    return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
  }

  static T swap_pairs(T x) { return _mm256_permute_ps(x, 0xB1); }
  static T even_twice(T x) { return _mm256_moveldup_ps(x); }
  static T odd_twice(T x) { return _mm256_movehdup_ps(x); }
  static T evens(T low, T high) { return in_order(_mm256_shuffle_ps(low, high, 0x88)); }
  static T odds(T low, T high) { return in_order(_mm256_shuffle_ps(low, high, 0xDD)); }

  // Lane i and lane i ^ kBit change places; kBit is 1, 2 or 4.
  template <int kBit>
  static T swap_lanes(T x) {
    if constexpr (kBit == 1) return _mm256_permute_ps(x, 0xB1);
    if constexpr (kBit == 2) return _mm256_permute_ps(x, 0x4E);
    return _mm256_permute2f128_ps(x, x, 1);
  }
  // -1 in the lanes that have kBit set, else 1.
  template <int kBit>
  static T signs() {
    constexpr std::uint32_t kLanesWithBit = kBit == 1 ? 0xAA : kBit == 2 ? 0xCC : 0xF0;
    return select(from_bits(kLanesWithBit), set1(-1.0F), set1(1.0F));
  }
  static T abs(T x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x); }
  static bool any_above(T a, T b) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
  }

  // 32-bit integers.
  using I = __m256i;
  static I zero_int() { return _mm256_setzero_si256(); }
  static I set1_int(std::int32_t x) { return _mm256_set1_epi32(x); }
  static I load_bytes(const void* at) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(at));
  }
  static I four_bytes(const void* at) {
    std::int32_t four = 0;
    __builtin_memcpy(&four, at, 4);
    return _mm256_set1_epi32(four);
  }
  static I add(I a, I b) { return _mm256_add_epi32(a, b); }
  static I sub(I a, I b) { return _mm256_sub_epi32(a, b); }
  template <int kBits>
  static I shift_left(I x) {
    return _mm256_slli_epi32(x, kBits);
  }
  template <int kBits>
  static I shift_right(I x) {  // with sign
    return _mm256_srai_epi32(x, kBits);
  }
  static T to_float(I x) { return _mm256_cvtepi32_ps(x); }
  static I to_int(T x) { return _mm256_cvtps_epi32(x); }  // to nearest even
  static std::int32_t reduce_add(I x) {
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
  }
  // The low byte of every lane.
  static void store_bytes(void* at, I x) {
    const __m256i low =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i bytes = _mm256_shuffle_epi8(x, low);
    const __m128i both =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storel_epi64(static_cast<__m128i*>(at), both);
  }

  // Sums of bytes times whole numbers of 15 bits with sign, by fours: lane i takes bytes
  // 4i .. 4i + 3 times the numbers of a group, the same for all lanes. Both sides become 16 bits,
  // even and odd ones apart.
  struct Pairs {
    I even;
    I odd;
  };
  using Group = Pairs;
  using UnsignedBytes = Pairs;
  using SignedBytes = Pairs;
  using Sum = I;
  static constexpr std::int64_t kGroupBytes = 8;
  static void store_groups(void* at, I x) {
    const I third_and_fourth = _mm256_slli_epi32(_mm256_shuffle_epi32(x, 0xEE), 16);
    const I pairs = _mm256_blend_epi16(x, third_and_fourth, 0xAA);
    _mm_storeu_si128(static_cast<__m128i*>(at),
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08)));
  }
  static Group load_group(const std::byte* at) { return {four_bytes(at), four_bytes(at + 4)}; }
  static UnsignedBytes load_unsigned(const void* at) {
    const I x = load_bytes(at);
    return {_mm256_and_si256(x, _mm256_set1_epi16(255)), _mm256_srli_epi16(x, 8)};
  }
  static SignedBytes load_signed(const void* at) {
    const I x = load_bytes(at);
    return {_mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), _mm256_srai_epi16(x, 8)};
  }
  static Sum no_sum() { return zero_int(); }
  static Sum add_products(Sum sum, const Pairs& bytes, const Group& group) {
    const I even = _mm256_madd_epi16(bytes.even, group.even);
    return add(add(sum, even), _mm256_madd_epi16(bytes.odd, group.odd));
  }
  static I total(Sum sum) { return sum; }

 private:
  // shuffle_ps works within 128 bits: puts the four pairs into order.
  static T in_order(T x) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xD8));
  }
};
