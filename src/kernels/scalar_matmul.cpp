// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar_matmul.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/packed_block.hpp"
#include "kernels/packing.hpp"

namespace spud::kernels::scalar {
namespace {

void prepare_block(const float* x, std::int64_t count, Int8Block& out) noexcept {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float inverse = largest > 0 ? 127.0F / largest : 0.0F;
  out = {};
  out.scale = largest / 127.0F;
  std::int32_t sums[2] = {0, 0};
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = std::nearbyint(x[i] * inverse);
    out.q[i] = static_cast<std::int8_t>(std::clamp(value, -127.0F, 127.0F));
    sums[i / 16] += out.q[i];
  }
  out.scaled_sum = out.scale * static_cast<float>(sums[0] + sums[1]);
  out.offset_sum = -128 * (sums[0] + sums[1]);
  for (int half = 0; half < 2; ++half) {
    out.scaled_sum16[half] = out.scale * static_cast<float>(sums[half]);
    out.offset_sum16[half] = -128 * sums[half];
  }
}

// One weight row against all activation rows. The sum runs over blocks in order, the minimum after
// the product: every ISA keeps this order.
template <Form F>
void multiply_row(const MatmulArgs& args, std::int64_t n) noexcept {
  const std::int64_t num_blocks = args.k / kBlock;
  const auto* panel =
      static_cast<const std::uint8_t*>(args.packed) + n / kPanelRows * F.panel_bytes(num_blocks);
  const auto* rows = static_cast<const Int8Block*>(args.activations);
  for (std::int64_t r = 0; r < args.m; ++r) args.out[r * args.out_stride + n] = 0.0F;

  for (std::int64_t block = 0; block < num_blocks; ++block) {
    const std::uint8_t* quants = panel + F.quants_at(block);
    std::int32_t w[kBlock];
    for (std::int64_t i = 0; i < kBlock; ++i) {
      w[i] = value_at<F>(quants, n % kPanelRows, i) - F.offset;
    }
    for (std::int64_t sub = 0; sub < F.subs(); ++sub) {
      const ScaleAndMin s = scale_at<F>(panel, n % kPanelRows, block, sub);
      for (std::int64_t r = 0; r < args.m; ++r) {
        const Int8Block& x = rows[r * int8_stride(args.k) + block];
        std::int32_t dot = 0;
        for (std::int64_t i = sub * F.sub; i < (sub + 1) * F.sub; ++i) {
          dot += w[i] * x.q[i];
        }
        float& out = args.out[r * args.out_stride + n];
        out += static_cast<float>(dot) * (s.scale * x.scale);
        if constexpr (F.mins) {
          out += s.min * (F.sub == 16 ? x.scaled_sum16[sub] : x.scaled_sum);
        }
      }
    }
  }
}

struct Scalar {
  template <Form F>
  static void matmul(const MatmulArgs& args) noexcept {
    for (std::int64_t n = args.n_begin; n < args.n_end; ++n) multiply_row<F>(args, n);
  }

  template <Plain P>
  static void matmul_plain(const MatmulArgs& args) noexcept {
    const auto x_stride = f32_row_bytes(args.k) / 4;
    for (std::int64_t n = args.n_begin; n < args.n_end; ++n) {
      const auto* panel = static_cast<const std::uint8_t*>(args.packed) +
                          n / kPanelRows * kPanelRows * args.k * plain_bytes(P);
      for (std::int64_t r = 0; r < args.m; ++r) {
        const float* x = static_cast<const float*>(args.activations) + r * x_stride;
        float sum = 0;
        for (std::int64_t i = 0; i < args.k; ++i) {
          sum += x[i] * load(panel + (i * kPanelRows + n % kPanelRows) * plain_bytes(P), P);
        }
        args.out[r * args.out_stride + n] = sum;
      }
    }
  }

 private:
  static float load(const std::uint8_t* at, Plain type) noexcept {
    if (type == Plain::kF32) {
      float value = 0;
      std::memcpy(&value, at, 4);
      return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, 2);
    return type == Plain::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
  }
};

#include "kernels/body/matmul_table.inl.hpp"

}  // namespace

std::size_t activation_bytes(ActivationKind kind, std::int64_t k) noexcept {
  return static_cast<std::size_t>(kind == ActivationKind::kF32 ? f32_row_bytes(k)
                                                               : 64 * int8_stride(k));
}

void prepare(ActivationKind kind, const float* x, std::int64_t k, void* out) noexcept {
  if (kind == ActivationKind::kInt8) {
    auto* blocks = static_cast<Int8Block*>(out);
    for (std::int64_t b = 0; b < int8_blocks(k); ++b) {
      prepare_block(x + b * kBlock, std::min(kBlock, k - b * kBlock), blocks[b]);
    }
    return;
  }
  const auto bytes = static_cast<std::size_t>(4 * k);
  std::memcpy(out, x, bytes);
  std::memset(static_cast<std::uint8_t*>(out) + bytes, 0,
              static_cast<std::size_t>(f32_row_bytes(k)) - bytes);
}

const MatmulKernels* find_matmul(tensor::DType type) noexcept { return find_in_rows<Scalar>(type); }

}  // namespace spud::kernels::scalar
