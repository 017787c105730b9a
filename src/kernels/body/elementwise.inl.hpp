// SPDX-License-Identifier: Apache-2.0
// Row functions over Vec, shared by the ISA files. The last lanes of a row are masked, never a
// scalar tail, so a value's result does not depend on its place. Sums over a row run in one fixed
// order of lanes. Include inside an anonymous namespace, after math.inl.hpp.

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon,
              float* y) noexcept {
  constexpr std::int64_t kStep = 4 * Vec::kLanes;
  Vec::T sums[4] = {Vec::zero(), Vec::zero(), Vec::zero(), Vec::zero()};
  for (std::int64_t i = 0; i < n; i += kStep) {
    for (int j = 0; j < 4; ++j) {
      const std::int64_t at = i + j * Vec::kLanes;
      const Vec::T v = Vec::load(Vec::first(n - at), x + at);
      sums[j] = Vec::fmadd(v, v, sums[j]);
    }
  }
  const Vec::T sum = Vec::add(Vec::add(sums[0], sums[1]), Vec::add(sums[2], sums[3]));
  const float mean = Vec::reduce_add(sum) / static_cast<float>(n);
  const float root = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + epsilon)));
  const Vec::T scale = Vec::set1(1.0F / root);
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    const Vec::T v = Vec::mul(Vec::load(lanes, x + i), scale);
    Vec::store(lanes, y + i, Vec::mul(v, Vec::load(lanes, weight + i)));
  }
}

void add(float* x, const float* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    Vec::store(lanes, x + i, Vec::add(Vec::load(lanes, x + i), Vec::load(lanes, y + i)));
  }
}

void silu_mul(float* gate, const float* up, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    const Vec::T g = Vec::load(lanes, gate + i);
    Vec::store(lanes, gate + i, Vec::mul(times_sigmoid(g, g), Vec::load(lanes, up + i)));
  }
}

// 0.5 x (1 + tanh u) = x sigmoid(2u), with u = sqrt(2/pi) (x + 0.044715 x^3).
void gelu_tanh_mul(float* gate, const float* up, std::int64_t n) noexcept {
  const Vec::T a = Vec::set1(2.0F * 0.7978845608028654F);
  const Vec::T b = Vec::set1(2.0F * 0.7978845608028654F * 0.044715F);
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    const Vec::T x = Vec::load(lanes, gate + i);
    const Vec::T u = Vec::mul(x, Vec::fmadd(Vec::mul(x, x), b, a));
    Vec::store(lanes, gate + i, Vec::mul(times_sigmoid(x, u), Vec::load(lanes, up + i)));
  }
}

// Pairs (2i, 2i + 1): even lanes a cos - b sin, odd lanes b cos + a sin.
void rope_pairs(float* x, std::int64_t rope_dim, const float* cos_sin) {
  for (std::int64_t i = 0; i < rope_dim; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(rope_dim - i);
    const Vec::T cs = Vec::load(lanes, cos_sin + i);
    const Vec::T v = Vec::load(lanes, x + i);
    const Vec::T by_sine = Vec::mul(Vec::swap_pairs(v), Vec::odd_twice(cs));
    Vec::store(lanes, x + i, Vec::fmaddsub(v, Vec::even_twice(cs), by_sine));
  }
}

// Halves (i, i + rope_dim / 2).
void rope_halves(float* x, std::int64_t rope_dim, const float* cos_sin) {
  const std::int64_t half = rope_dim / 2;
  for (std::int64_t i = 0; i < half; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(half - i);
    const std::int64_t left = 2 * (half - i);
    const float* at = cos_sin + 2 * i;
    const Vec::T low = Vec::load(Vec::first(left), at);
    const Vec::T high = Vec::load(Vec::first(left - Vec::kLanes), at + Vec::kLanes);
    const Vec::T cosine = Vec::evens(low, high);
    const Vec::T sine = Vec::odds(low, high);
    const Vec::T a = Vec::load(lanes, x + i);
    const Vec::T b = Vec::load(lanes, x + half + i);
    Vec::store(lanes, x + i, Vec::fmsub(a, cosine, Vec::mul(b, sine)));
    Vec::store(lanes, x + half + i, Vec::fmadd(b, cosine, Vec::mul(a, sine)));
  }
}

void rope(float* x, std::int64_t heads, std::int64_t head_dim, std::int64_t rope_dim,
          const float* cos_sin, bool interleaved) noexcept {
  for (std::int64_t h = 0; h < heads; ++h, x += head_dim) {
    if (interleaved) {
      rope_pairs(x, rope_dim, cos_sin);
    } else {
      rope_halves(x, rope_dim, cos_sin);
    }
  }
}

void f32_to_f16(const float* x, std::int64_t n, std::uint16_t* out) noexcept {
  std::int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) Vec::store_half(out + i, Vec::load(x + i));
  if (i == n) return;
  std::uint16_t rest[Vec::kLanes];
  Vec::store_half(rest, Vec::load(Vec::first(n - i), x + i));
  for (std::int64_t j = 0; i < n; ++i, ++j) out[i] = rest[j];
}

float max_of(const float* x, std::int64_t n) {
  const Vec::T lowest = Vec::set1(-__builtin_inff());
  Vec::T max = lowest;
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    max = Vec::max(Vec::select(lanes, Vec::load(lanes, x + i), lowest), max);
  }
  return Vec::reduce_max(max);
}

ExpSum exp_sum(const float* x, std::int64_t n) noexcept {
  const float max = max_of(x, n);
  if (!(max > -__builtin_inff())) return {max, 0.0F};
  const Vec::T shift = Vec::set1(max);
  Vec::T sum = Vec::zero();
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    const Vec::T e = exp_of(Vec::sub(Vec::load(lanes, x + i), shift));
    sum = Vec::add(sum, Vec::select(lanes, e, Vec::zero()));
  }
  return {max, Vec::reduce_add(sum)};
}

std::int64_t find_at_least(const float* x, std::int64_t n, float least,
                           std::int32_t* out) noexcept {
  const Vec::T limit = Vec::set1(least);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    std::uint32_t found = Vec::at_least_bits(lanes, Vec::load(lanes, x + i), limit);
    for (; found != 0; found &= found - 1) {
      out[count++] = static_cast<std::int32_t>(i) + __builtin_ctz(found);
    }
  }
  return count;
}

std::int64_t argmax(const float* x, std::int64_t n) noexcept {
  const Vec::T wanted = Vec::set1(max_of(x, n));
  for (std::int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::Mask lanes = Vec::first(n - i);
    const std::uint32_t equal = Vec::equal_bits(lanes, Vec::load(lanes, x + i), wanted);
    if (equal != 0) return i + __builtin_ctz(equal);
  }
  return 0;
}

KernelTable with_elementwise(KernelTable table) noexcept {
  table.rms_norm = &rms_norm;
  table.add = &add;
  table.silu_mul = &silu_mul;
  table.gelu_tanh_mul = &gelu_tanh_mul;
  table.rope = &rope;
  table.f32_to_f16 = &f32_to_f16;
  table.exp_sum = &exp_sum;
  table.find_at_least = &find_at_least;
  table.argmax = &argmax;
  return table;
}
