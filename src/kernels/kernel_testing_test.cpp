// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_testing.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <span>

#include "kernels/half.hpp"
#include "quantize/quantize.hpp"

namespace spud::kernels::testing {

using tensor::DType;

std::vector<Isa> host_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= detect_isa()) isas.push_back(isa);
  }
  return isas;
}

std::vector<DType> product_types() {
  return {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,   DType::kQ4_0,
          DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kIQ4_NL, DType::kQ2_K,
          DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,   DType::kIQ4_XS};
}

namespace {

// Where the f16 scales of a block lie.
std::vector<std::size_t> scale_offsets(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    default:
      return {0};
  }
}

void put_half(std::byte* at, float value) {
  const std::uint16_t bits = float_to_half(value);
  std::memcpy(at, &bits, 2);
}

}  // namespace

std::vector<std::byte> random_weights(DType type, std::int64_t n, std::int64_t k,
                                      std::uint32_t seed) {
  const tensor::DTypeTraits& traits = tensor::traits(type);
  std::vector<std::byte> bytes(tensor::bytes_for(type, static_cast<std::uint64_t>(n * k)).value());
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> value(-1.0F, 1.0F);
  if (!traits.quantised) {
    for (std::size_t i = 0; i < bytes.size(); i += traits.block_bytes) {
      const float v = value(rng);
      const auto top = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16);
      if (type == DType::kF32) std::memcpy(&bytes[i], &v, 4);
      if (type == DType::kF16) put_half(&bytes[i], v);
      if (type == DType::kBF16) std::memcpy(&bytes[i], &top, 2);
    }
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng());
  for (std::size_t block = 0; block < bytes.size(); block += traits.block_bytes) {
    for (const std::size_t offset : scale_offsets(type)) {
      put_half(&bytes[block + offset], 0.01F * value(rng));
    }
  }
  return bytes;
}

std::vector<float> random_floats(std::int64_t count, std::uint32_t seed, float scale) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> value(0.0F, scale);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = value(rng);
  return values;
}

std::vector<float> dequantized(DType type, const std::vector<std::byte>& blocks,
                               std::int64_t values) {
  std::vector<float> out(static_cast<std::size_t>(values));
  const auto done = quantize::dequantize(type, blocks, out);
  EXPECT_TRUE(done.has_value());
  return out;
}

Problem::Problem(const KernelTable& table, DType type, const std::vector<std::byte>& blocks,
                 std::int64_t rows, std::int64_t columns, const std::vector<float>& x)
    : kernels(table.find_matmul(type)),
      n(rows),
      k(columns),
      m(static_cast<std::int64_t>(x.size()) / columns),
      packed(kernels->packed_bytes(n, k)),
      activations(table.activation_bytes(kernels->activation, k) * static_cast<std::size_t>(m)),
      row_bytes(table.activation_bytes(kernels->activation, k)) {
  kernels->pack(blocks.data(), n, k, 0, n, packed.data());
  for (std::int64_t r = 0; r < m; ++r) {
    table.prepare(kernels->activation, x.data() + r * k, k,
                  activations.as<std::byte>() + static_cast<std::size_t>(r) * row_bytes);
  }
}

void Problem::run(float* out, std::int64_t row, std::int64_t rows, std::int64_t begin,
                  std::int64_t end) {
  kernels->matmul(
      {.packed = packed.data(),
       .activations = activations.as<std::byte>() + static_cast<std::size_t>(row) * row_bytes,
       .out = out,
       .out_stride = n,
       .m = rows,
       .n_begin = begin,
       .n_end = end,
       .n_total = n,
       .k = k});
}

TEST(KernelTable, ForcedIsaIsTheActiveOneAndFoldsOverTheLowerOnes) {
  const KernelTable scalar = select_kernels(Isa::kScalar);
  EXPECT_EQ(scalar.isa, Isa::kScalar);
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    EXPECT_EQ(table.isa, isa) << to_string(isa);
    if (isa == Isa::kScalar) continue;
    const KernelTable below = select_kernels(static_cast<Isa>(static_cast<int>(isa) - 1));
    EXPECT_NE(table.find_matmul, below.find_matmul) << to_string(isa);
    for (std::size_t type = 0; type < kNumKvTypes; ++type) {
      EXPECT_NE(table.kv[type].attention, below.kv[type].attention) << to_string(isa);
    }
    EXPECT_NE(table.find_matmul(DType::kQ8_0)->matmul, below.find_matmul(DType::kQ8_0)->matmul);
  }
}

TEST(KernelTable, IntegersHaveNoProduct) {
  for (const Isa isa : host_isas()) {
    EXPECT_EQ(select_kernels(isa).find_matmul(DType::kI32), nullptr);
  }
}

TEST(Half, ConvertsLikeTheDefinitionForAllBitPatterns) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) continue;
    EXPECT_EQ(float_to_half(value), half);
  }
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);  // rounds to infinity
  EXPECT_EQ(float_to_half(65519.0F), 0x7BFF);
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3C00);  // a tie goes to even
  EXPECT_EQ(float_to_half(1.0F + 0x1.8p-10F), 0x3C02);
  EXPECT_EQ(float_to_half(0x1p-25F), 0x0000);
  EXPECT_EQ(float_to_half(0x1.8p-24F), 0x0002);
}

TEST(Half, EveryIsaRoundsTheSame) {
  std::vector<float> x = random_floats(1003, 5, 100.0F);
  x[0] = 1e-7F;
  x[1] = -1e6F;
  for (const Isa isa : host_isas()) {
    for (const std::int64_t n : {0, 1, 7, 8, 15, 16, 17, 1003}) {
      std::vector<std::uint16_t> out(static_cast<std::size_t>(n) + 1, 0x1234);
      select_kernels(isa).f32_to_f16(x.data(), n, out.data());
      for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(out[static_cast<std::size_t>(i)], float_to_half(x[static_cast<std::size_t>(i)]));
      }
      EXPECT_EQ(out.back(), 0x1234) << "wrote past the end";
    }
  }
}

}  // namespace spud::kernels::testing
