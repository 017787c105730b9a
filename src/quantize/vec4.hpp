// SPDX-License-Identifier: Apache-2.0
// Four floats at once with the compiler's vector types: the scale search runs dozens of trials per
// block and would be three times slower value by value. Internal to quantize/; order of summation
// is fixed, so results do not depend on compiler or machine.
#pragma once

#include <cstring>

namespace spud::quantize::internal {

typedef float Vec4 __attribute__((vector_size(16)));  // `using` cannot carry the attribute in GCC
typedef int IntVec4 __attribute__((vector_size(16)));

inline Vec4 load4(const float* p) noexcept {
  Vec4 v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

inline Vec4 all4(float value) noexcept { return Vec4{value, value, value, value}; }

inline float sum4(Vec4 v) noexcept { return (v[0] + v[2]) + (v[1] + v[3]); }

inline Vec4 clamp4(Vec4 v, Vec4 low, Vec4 high) noexcept {
  const Vec4 raised = v < low ? low : v;
  return raised > high ? high : raised;
}

// Towards zero.
inline IntVec4 to_int4(Vec4 v) noexcept { return __builtin_convertvector(v, IntVec4); }

// To the nearest whole number, ties to even, for |v| < 2^22: adding 1.5 * 2^23 leaves no bits for
// the fraction.
inline Vec4 round4(Vec4 v) noexcept {
  const Vec4 magic = all4(12582912.0F);
  return (v + magic) - magic;
}

// The same for one value (std::nearbyint is a library call without SSE4.1).
inline float round1(float v) noexcept { return (v + 12582912.0F) - 12582912.0F; }

}  // namespace spud::quantize::internal
