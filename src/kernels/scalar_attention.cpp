// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar_attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/half.hpp"

namespace spud::kernels::scalar {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kMaxHeadDim = 256;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// F16 block: both halves are arrays of F16.
struct HalfBlock {
  std::byte* memory;
  std::int64_t head_dim;

  std::byte* at(std::int64_t index) const noexcept { return memory + 2 * index; }
  std::int64_t key_index(std::int64_t dim, std::int64_t slot) const noexcept {
    return dim * kPageTokens + slot;
  }
  std::int64_t value_index(std::int64_t dim, std::int64_t slot) const noexcept {
    return (kPageTokens + slot) * head_dim + dim;
  }
  float load(std::int64_t index) const noexcept {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at(index), 2);
    return half_to_float(bits);
  }
  void save(std::int64_t index, float value) const noexcept {
    const std::uint16_t bits = float_to_half(value);
    std::memcpy(at(index), &bits, 2);
  }

  float key(std::int64_t dim, std::int64_t slot) const noexcept {
    return load(key_index(dim, slot));
  }
  float value(std::int64_t dim, std::int64_t slot) const noexcept {
    return load(value_index(dim, slot));
  }
  // Between a head's values and the space in which they are stored.
  void to_stored(const float* x, float* out) const noexcept { std::copy_n(x, head_dim, out); }
  void from_stored(float* /*x*/) const noexcept {}
  void store(const float* key, const float* value, std::int64_t slot) const noexcept {
    for (std::int64_t d = 0; d < head_dim; ++d) {
      save(key_index(d, slot), key[d]);
      save(value_index(d, slot), value[d]);
    }
  }
};

void rotate(const float* x, std::int64_t head_dim, float* out) noexcept {
  const std::int64_t size = kv_rotation(head_dim);
  std::copy_n(x, head_dim, out);
  for (std::int64_t half = 1; half < size; half *= 2) {
    for (std::int64_t i = 0; i < head_dim; ++i) {
      if ((i & half) != 0) continue;
      const float a = out[i];
      const float b = out[i + half];
      out[i] = a + b;
      out[i + half] = a - b;
    }
  }
  for (std::int64_t i = 0; i < head_dim; ++i) out[i] *= kv_rotation_scale(size);
}

struct ByteBlock {
  std::byte* memory;
  std::int64_t head_dim;

  Int8KvLayout layout() const noexcept { return {head_dim}; }
  float scale(std::int64_t at, std::int64_t slot) const noexcept {
    std::uint16_t bits = 0;
    std::memcpy(&bits, memory + at + 2 * slot, 2);
    return half_to_float(bits);
  }
  float key(std::int64_t dim, std::int64_t slot) const noexcept {
    const int q = static_cast<int>(memory[layout().key(dim, slot)]) - 128;
    return scale(layout().key_scales(), slot) * static_cast<float>(q);
  }
  float value(std::int64_t dim, std::int64_t slot) const noexcept {
    const auto q = static_cast<std::int8_t>(memory[layout().value(dim, slot)]);
    return scale(layout().value_scales(), slot) * static_cast<float>(q);
  }
  void to_stored(const float* x, float* out) const noexcept { rotate(x, head_dim, out); }
  void from_stored(float* x) const noexcept {
    float rotated[kMaxHeadDim];
    rotate(x, head_dim, rotated);
    std::copy_n(rotated, head_dim, x);
  }
  void store(const float* raw_key, const float* raw_value, std::int64_t slot) const noexcept {
    float key[kMaxHeadDim];
    float value[kMaxHeadDim];
    rotate(raw_key, head_dim, key);
    rotate(raw_value, head_dim, value);
    const float key_scale = save_scale(key, layout().key_scales(), slot);
    const float value_scale = save_scale(value, layout().value_scales(), slot);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      memory[layout().key(d, slot)] = static_cast<std::byte>(quantised(key[d], key_scale) + 128);
      memory[layout().value(d, slot)] = static_cast<std::byte>(quantised(value[d], value_scale));
    }
  }

 private:
  // The scale as it is read back: what is stored is relative to that.
  float save_scale(const float* x, std::int64_t at, std::int64_t slot) const noexcept {
    float largest = 0;
    bool finite = true;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      largest = std::max(largest, std::fabs(x[d]));
      finite = finite && std::isfinite(x[d]);
    }
    const std::uint16_t bits = float_to_half(finite ? largest / 127.0F : kInfinity);
    std::memcpy(memory + at + 2 * slot, &bits, 2);
    return half_to_float(bits);
  }
  static int quantised(float x, float scale) noexcept {
    if (!(scale > 0 && scale < kInfinity)) return 0;
    return static_cast<int>(std::nearbyint(std::clamp(x * (1.0F / scale), -127.0F, 127.0F)));
  }
};

// Running maximum, denominator and numerator of one row's softmax.
struct OnlineSoftmax {
  float max = kLowest;
  float sum = 0;
  float acc[kMaxHeadDim] = {};
};

// Adds the positions [begin, end) of one page, whose first position is 0 here.
template <typename Block>
void attend_page(const AttentionArgs& args, const float* q, const Block& block, std::int64_t begin,
                 std::int64_t end, OnlineSoftmax& state) noexcept {
  float scores[kPageTokens];
  float max = state.max;
  for (std::int64_t t = begin; t < end; ++t) {
    float score = 0;
    for (std::int64_t d = 0; d < args.head_dim; ++d) score += q[d] * block.key(d, t);
    score *= args.scale;
    if (args.softcap > 0) score = args.softcap * std::tanh(score / args.softcap);
    scores[t] = score;
    max = std::max(max, score);
  }
  const float shrink = std::exp(state.max - max);  // 0 on the first page
  state.max = max;
  state.sum *= shrink;
  for (std::int64_t d = 0; d < args.head_dim; ++d) state.acc[d] *= shrink;
  for (std::int64_t t = begin; t < end; ++t) {
    const float p = std::exp(scores[t] - max);
    state.sum += p;
    for (std::int64_t d = 0; d < args.head_dim; ++d) state.acc[d] += p * block.value(d, t);
  }
}

template <typename Block>
void attention(const AttentionArgs& args) noexcept {
  for (std::int64_t r = 0; r < args.num_rows; ++r) {
    const AttentionRow& row = args.rows[r];
    OnlineSoftmax state;
    float q[kMaxHeadDim];
    Block{nullptr, args.head_dim}.to_stored(row.q, q);
    for (std::int64_t page = row.first / kPageTokens; page <= row.position / kPageTokens; ++page) {
      const std::int64_t base = page * kPageTokens;
      const Block block{const_cast<std::byte*>(row.pages[page]), args.head_dim};  // only read
      attend_page(args, q, block, std::max<std::int64_t>(row.first - base, 0),
                  std::min(row.position - base + 1, kPageTokens), state);
    }
    for (std::int64_t d = 0; d < args.head_dim; ++d) row.out[d] = state.acc[d] / state.sum;
    Block{nullptr, args.head_dim}.from_stored(row.out);
  }
}

template <typename Block>
void store(const float* key, const float* value, std::int64_t head_dim, std::int64_t slot,
           std::byte* block) noexcept {
  Block{block, head_dim}.store(key, value, slot);
}

}  // namespace

KvKernels kv_kernels(KvType type) noexcept {
  if (type == KvType::kF16) return {&store<HalfBlock>, &attention<HalfBlock>};
  return {&store<ByteBlock>, &attention<ByteBlock>};
}

}  // namespace spud::kernels::scalar
