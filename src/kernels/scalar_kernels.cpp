// SPDX-License-Identifier: Apache-2.0
// The scalar table: the definition of every kernel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/half.hpp"
#include "kernels/kernel_table.hpp"
#include "kernels/scalar_attention.hpp"
#include "kernels/scalar_matmul.hpp"

namespace spud::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon,
              float* y) noexcept {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0F / std::sqrt(sum / static_cast<float>(n) + epsilon);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

void add(float* x, const float* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

void silu_mul(float* gate, const float* up, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0F + std::exp(-gate[i])) * up[i];
}

// Hendrycks & Gimpel 2016, the tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
void gelu_tanh_mul(float* gate, const float* up, std::int64_t n) noexcept {
  constexpr float kRoot = 0.7978845608028654F;
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = gate[i];
    const float t = std::tanh(kRoot * (x + 0.044715F * x * x * x));
    gate[i] = 0.5F * x * (1.0F + t) * up[i];
  }
}

void rope(float* x, std::int64_t heads, std::int64_t head_dim, std::int64_t rope_dim,
          const float* cos_sin, bool interleaved) noexcept {
  const std::int64_t half = rope_dim / 2;
  for (std::int64_t h = 0; h < heads; ++h, x += head_dim) {
    for (std::int64_t i = 0; i < half; ++i) {
      float& a = interleaved ? x[2 * i] : x[i];
      float& b = interleaved ? x[2 * i + 1] : x[i + half];
      const float cosine = cos_sin[2 * i];
      const float sine = cos_sin[2 * i + 1];
      const float rotated = a * cosine - b * sine;
      b = a * sine + b * cosine;
      a = rotated;
    }
  }
}

void f32_to_f16(const float* x, std::int64_t n, std::uint16_t* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = float_to_half(x[i]);
}

ExpSum exp_sum(const float* x, std::int64_t n) noexcept {
  ExpSum out{.max = kLowest, .sum = 0};
  for (std::int64_t i = 0; i < n; ++i) out.max = std::max(out.max, x[i]);
  if (!(out.max > kLowest)) return out;
  for (std::int64_t i = 0; i < n; ++i) out.sum += std::exp(x[i] - out.max);
  return out;
}

std::int64_t find_at_least(const float* x, std::int64_t n, float least,
                           std::int32_t* out) noexcept {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] >= least) out[count++] = static_cast<std::int32_t>(i);
  }
  return count;
}

std::int64_t argmax(const float* x, std::int64_t n) noexcept {
  return std::max_element(x, x + n) - x;
}

}  // namespace

KernelTable scalar_kernels() noexcept {
  return {.isa = Isa::kScalar,
          .activation_bytes = &scalar::activation_bytes,
          .prepare = &scalar::prepare,
          .find_matmul = &scalar::find_matmul,
          .rms_norm = &rms_norm,
          .add = &add,
          .silu_mul = &silu_mul,
          .gelu_tanh_mul = &gelu_tanh_mul,
          .rope = &rope,
          .f32_to_f16 = &f32_to_f16,
          .kv = {scalar::kv_kernels(KvType::kF16), scalar::kv_kernels(KvType::kInt8)},
          .exp_sum = &exp_sum,
          .find_at_least = &find_at_least,
          .argmax = &argmax};
}

}  // namespace spud::kernels
