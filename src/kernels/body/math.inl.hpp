// SPDX-License-Identifier: Apache-2.0
// Vector functions over Vec. Include inside an anonymous namespace, after a vec_*.inl.hpp.

// e^x to about 1 unit in the last place: x = n ln2 + r, |r| <= ln2/2, then the polynomial of
// Cephes' expf. Below -104 the result is 0 like the true one; above 88.7 infinity.
inline Vec::T exp_of(Vec::T x) {
  x = Vec::max(x, Vec::set1(-104.0F));
  x = Vec::min(x, Vec::set1(104.0F));
  const Vec::T n = Vec::round(Vec::mul(x, Vec::set1(1.44269504088896341F)));
  Vec::T r = Vec::fnmadd(n, Vec::set1(0.693359375F), x);
  r = Vec::fnmadd(n, Vec::set1(-2.12194440e-4F), r);
  Vec::T p = Vec::set1(1.9875691500e-4F);
  p = Vec::fmadd(p, r, Vec::set1(1.3981999507e-3F));
  p = Vec::fmadd(p, r, Vec::set1(8.3334519073e-3F));
  p = Vec::fmadd(p, r, Vec::set1(4.1665795894e-2F));
  p = Vec::fmadd(p, r, Vec::set1(1.6666665459e-1F));
  p = Vec::fmadd(p, r, Vec::set1(5.0000001201e-1F));
  p = Vec::fmadd(p, Vec::mul(r, r), Vec::add(r, Vec::set1(1.0F)));
  return Vec::times_power_of_two(p, n);
}

// x / (1 + e^-y): x times the sigmoid of y.
inline Vec::T times_sigmoid(Vec::T x, Vec::T y) {
  const Vec::T e = exp_of(Vec::sub(Vec::zero(), y));
  return Vec::div(x, Vec::add(Vec::set1(1.0F), e));
}
