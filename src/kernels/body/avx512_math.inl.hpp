// SPDX-License-Identifier: Apache-2.0
// Vector functions that several AVX-512 files need. Include inside their anonymous namespace.

// The first n of 16 lanes; all when n >= 16.
inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1U << n) - 1U);
}

// e^x to about 1 unit in the last place: x = n ln2 + r, |r| <= ln2/2, then the polynomial of
// Cephes' expf. Below -104 the result is 0 like the true one; above 88.7 infinity.
inline __m512 exp_ps(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-104.0F));
  x = _mm512_min_ps(x, _mm512_set1_ps(104.0F));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341F)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F), r);
  __m512 p = _mm512_set1_ps(1.9875691500e-4F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1F));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), _mm512_add_ps(r, _mm512_set1_ps(1.0F)));
  return _mm512_scalef_ps(p, n);
}

// x / (1 + e^-y): the sigmoid of y times x.
inline __m512 times_sigmoid(__m512 x, __m512 y) {
  const __m512 e = exp_ps(_mm512_sub_ps(_mm512_setzero_ps(), y));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0F), e));
}
