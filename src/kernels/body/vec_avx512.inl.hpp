// SPDX-License-Identifier: Apache-2.0
// The 16-lane vector that the shared bodies are written against. Include inside the anonymous
// namespace of an AVX-512 file; body/vec_avx2.inl.hpp is its 8-lane twin.

struct Vec {
  using T = __m512;
  using Mask = __mmask16;
  static constexpr std::int64_t kLanes = 16;

  // The first n lanes; none when n <= 0, all when n >= kLanes.
  static Mask first(std::int64_t n) {
    return static_cast<Mask>(n >= 16 ? 0xFFFFU : n <= 0 ? 0U : (1U << n) - 1U);
  }
  static Mask from_bits(std::uint32_t bits) { return static_cast<Mask>(bits); }

  static T zero() { return _mm512_setzero_ps(); }
  static T set1(float x) { return _mm512_set1_ps(x); }
  static T load(const float* at) { return _mm512_loadu_ps(at); }
  static T load(Mask lanes, const float* at) { return _mm512_maskz_loadu_ps(lanes, at); }
  static T load_half(const std::uint16_t* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  static void store(float* at, T x) { _mm512_storeu_ps(at, x); }
  static void store(Mask lanes, float* at, T x) { _mm512_mask_storeu_ps(at, lanes, x); }
  static void store_half(std::uint16_t* at, T x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  static T add(T a, T b) { return _mm512_add_ps(a, b); }
  static T sub(T a, T b) { return _mm512_sub_ps(a, b); }
  static T mul(T a, T b) { return _mm512_mul_ps(a, b); }
  static T div(T a, T b) { return _mm512_div_ps(a, b); }
  static T max(T a, T b) { return _mm512_max_ps(a, b); }
  static T min(T a, T b) { return _mm512_min_ps(a, b); }
  static T fmadd(T a, T b, T c) { return _mm512_fmadd_ps(a, b, c); }        // a b + c
  static T fnmadd(T a, T b, T c) { return _mm512_fnmadd_ps(a, b, c); }      // c - a b
  static T fmsub(T a, T b, T c) { return _mm512_fmsub_ps(a, b, c); }        // a b - c
  static T fmaddsub(T a, T b, T c) { return _mm512_fmaddsub_ps(a, b, c); }  // even -, odd +
  static T select(Mask lanes, T yes, T no) { return _mm512_mask_mov_ps(no, lanes, yes); }
  static std::uint32_t at_least_bits(Mask lanes, T a, T b) {
    return _mm512_mask_cmp_ps_mask(lanes, a, b, _CMP_GE_OQ);
  }
  static std::uint32_t equal_bits(Mask lanes, T a, T b) {
    return _mm512_mask_cmp_ps_mask(lanes, a, b, _CMP_EQ_OQ);
  }

  static T round(T x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static T times_power_of_two(T x, T n) { return _mm512_scalef_ps(x, n); }
  static float reduce_add(T x) { return _mm512_reduce_add_ps(x); }
  static float reduce_max(T x) { return _mm512_reduce_max_ps(x); }

  static T swap_pairs(T x) { return _mm512_permute_ps(x, 0xB1); }
  static T even_twice(T x) { return _mm512_moveldup_ps(x); }
  static T odd_twice(T x) { return _mm512_movehdup_ps(x); }
  // The even and the odd lanes of the 32 in (low, high).
  static T evens(T low, T high) {
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(low, at, high);
  }
  static T odds(T low, T high) {
    const __m512i at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(low, at, high);
  }

  // Lane i and lane i ^ kBit change places; kBit is 1, 2, 4 or 8.
  template <int kBit>
  static T swap_lanes(T x) {
    if constexpr (kBit == 1) return _mm512_permute_ps(x, 0xB1);
    if constexpr (kBit == 2) return _mm512_permute_ps(x, 0x4E);
    return _mm512_shuffle_f32x4(x, x, kBit == 4 ? 0xB1 : 0x4E);
  }
  // -1 in the lanes that have kBit set, else 1.
  template <int kBit>
  static T signs() {
    constexpr std::uint32_t kLanesWithBit = kBit == 1   ? 0xAAAA
                                            : kBit == 2 ? 0xCCCC
                                            : kBit == 4 ? 0xF0F0
                                                        : 0xFF00;
    return select(from_bits(kLanesWithBit), set1(-1.0F), set1(1.0F));
  }
  static T abs(T x) { return _mm512_abs_ps(x); }
  static bool any_above(T a, T b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0; }

  // 32-bit integers.
  using I = __m512i;
  static I zero_int() { return _mm512_setzero_si512(); }
  static I set1_int(std::int32_t x) { return _mm512_set1_epi32(x); }
  static I load_bytes(const void* at) { return _mm512_loadu_si512(at); }
  static I four_bytes(const void* at) {
    std::int32_t four = 0;
    __builtin_memcpy(&four, at, 4);
    return _mm512_set1_epi32(four);
  }
  static I add(I a, I b) { return _mm512_add_epi32(a, b); }
  static I sub(I a, I b) { return _mm512_sub_epi32(a, b); }
  template <int kBits>
  static I shift_left(I x) {
    return _mm512_slli_epi32(x, kBits);
  }
  template <int kBits>
  static I shift_right(I x) {  // with sign
    return _mm512_srai_epi32(x, kBits);
  }
  static T to_float(I x) { return _mm512_cvtepi32_ps(x); }
  static I to_int(T x) { return _mm512_cvtps_epi32(x); }  // to nearest even
  static std::int32_t reduce_add(I x) { return _mm512_reduce_add_epi32(x); }
  // The low byte of every lane.
  static void store_bytes(void* at, I x) {
    _mm_storeu_si128(static_cast<__m128i*>(at), _mm512_cvtepi32_epi8(x));
  }

  // Sums of bytes times whole numbers of 15 bits with sign, by fours: lane i takes bytes
  // 4i .. 4i + 3 times the numbers of a group, the same for all lanes. A number is
  // 128 * high + low, bytes both, with a sum for each: the larger is shifted left at the end.
  struct Group {
    I high;
    I low;
  };
  struct UnsignedBytes {
    I bytes;
  };
  struct SignedBytes {  // times numbers that are not negative
    I bytes;
  };
  using Sum = Group;
  static constexpr std::int64_t kGroupBytes = 8;
  static void store_groups(void* at, I x) {
    const I high = shift_right<7>(x);
    const __m128i high_bytes = _mm512_cvtepi32_epi8(high);
    const __m128i low_bytes = _mm512_cvtepi32_epi8(sub(x, shift_left<7>(high)));
    auto* to = static_cast<__m128i*>(at);
    _mm_storeu_si128(to, _mm_unpacklo_epi32(high_bytes, low_bytes));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi32(high_bytes, low_bytes));
  }
  static Group load_group(const std::byte* at) { return {four_bytes(at), four_bytes(at + 4)}; }
  static UnsignedBytes load_unsigned(const void* at) { return {load_bytes(at)}; }
  static SignedBytes load_signed(const void* at) { return {load_bytes(at)}; }
  static Sum no_sum() { return {zero_int(), zero_int()}; }
  static Sum add_products(Sum sum, UnsignedBytes x, Group group) {
    return {dot4(sum.high, x.bytes, group.high), dot4(sum.low, x.bytes, group.low)};
  }
  static Sum add_products(Sum sum, SignedBytes x, Group group) {
    return {dot4(sum.high, group.high, x.bytes), dot4(sum.low, group.low, x.bytes)};
  }
  static I total(Sum sum) { return add(shift_left<7>(sum.high), sum.low); }

 private:
  // acc + u . s, u unsigned. Not the intrinsic: GCC 12 copies its sum from one register to another
  // around each, spills some, and the loops over pages take 1.4 times as long.
  static I dot4(I acc, I u, I s) {
    asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(s));
    return acc;
  }
};
