// SPDX-License-Identifier: Apache-2.0
// The scalar table: the definition of every kernel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/half.hpp"
#include "kernels/kernel_table.hpp"
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

void store_kv(const float* key, const float* value, std::int64_t head_dim, std::int64_t slot,
              std::uint16_t* block) noexcept {
  std::uint16_t* values = block + head_dim * kPageTokens;
  for (std::int64_t d = 0; d < head_dim; ++d) {
    block[d * kPageTokens + slot] = float_to_half(key[d]);
    values[slot * head_dim + d] = float_to_half(value[d]);
  }
}

// Running maximum, denominator and numerator of one query's softmax.
struct OnlineSoftmax {
  float max = kLowest;
  float sum = 0;
  float acc[256] = {};
};

// Adds the positions [begin, end) of one page, whose first position is 0 here.
void attend_page(const AttentionArgs& args, const float* q, const std::uint16_t* block,
                 std::int64_t begin, std::int64_t end, OnlineSoftmax& state) noexcept {
  float scores[kPageTokens];
  float max = state.max;
  for (std::int64_t t = begin; t < end; ++t) {
    float score = 0;
    for (std::int64_t d = 0; d < args.head_dim; ++d) {
      score += q[d] * half_to_float(block[d * kPageTokens + t]);
    }
    score *= args.scale;
    if (args.softcap > 0) score = args.softcap * std::tanh(score / args.softcap);
    scores[t] = score;
    max = std::max(max, score);
  }
  const float shrink = std::exp(state.max - max);  // 0 on the first page
  state.max = max;
  state.sum *= shrink;
  for (std::int64_t d = 0; d < args.head_dim; ++d) state.acc[d] *= shrink;
  const std::uint16_t* values = block + args.head_dim * kPageTokens;
  for (std::int64_t t = begin; t < end; ++t) {
    const float p = std::exp(scores[t] - max);
    state.sum += p;
    for (std::int64_t d = 0; d < args.head_dim; ++d) {
      state.acc[d] += p * half_to_float(values[t * args.head_dim + d]);
    }
  }
}

void attention(const AttentionArgs& args) noexcept {
  for (std::int64_t i = 0; i < args.num_queries; ++i) {
    const std::int64_t position = args.first_position + i;
    const std::int64_t first =
        args.window > 0 ? std::max<std::int64_t>(0, position - args.window + 1) : 0;
    for (std::int64_t h = 0; h < args.group; ++h) {
      const float* q = args.q + i * args.q_stride + h * args.head_dim;
      float* out = args.out + i * args.out_stride + h * args.head_dim;
      OnlineSoftmax state;
      for (std::int64_t page = first / kPageTokens; page <= position / kPageTokens; ++page) {
        const std::int64_t base = page * kPageTokens;
        attend_page(args, q, args.pages[page], std::max<std::int64_t>(first - base, 0),
                    std::min(position - base + 1, kPageTokens), state);
      }
      for (std::int64_t d = 0; d < args.head_dim; ++d) out[d] = state.acc[d] / state.sum;
    }
  }
}

float log_sum_exp(const float* x, std::int64_t n) noexcept {
  float max = kLowest;
  for (std::int64_t i = 0; i < n; ++i) max = std::max(max, x[i]);
  if (!(max > kLowest)) return max;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
  return max + static_cast<float>(std::log(sum));
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
          .store_kv = &store_kv,
          .attention = &attention,
          .log_sum_exp = &log_sum_exp,
          .argmax = &argmax};
}

}  // namespace spud::kernels
