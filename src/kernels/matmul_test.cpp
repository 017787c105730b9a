// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel_testing.hpp"
#include "kernels/packed_layout.hpp"

namespace spud::kernels::testing {
namespace {

using tensor::DType;

// Columns that the type allows: a partial block count, an odd one, one of our models.
std::vector<std::int64_t> columns_for(DType type) {
  const auto block = static_cast<std::int64_t>(tensor::traits(type).block_values);
  if (block == 256) return {256, 1536};
  if (block == 32) return {32, 96, 576};
  return {1, 31, 64, 576};
}

std::string name(DType type, Isa isa, std::int64_t n, std::int64_t k, std::int64_t m) {
  return std::string(tensor::to_string(type)) + " " + to_string(isa) + " n=" + std::to_string(n) +
         " k=" + std::to_string(k) + " m=" + std::to_string(m);
}

TEST(Packing, GivesBackEveryValueOfTheFile) {
  const KernelTable table = select_kernels(Isa::kScalar);
  for (const DType type : product_types()) {
    for (const std::int64_t k : columns_for(type)) {
      for (const std::int64_t n : {1, 16, 37}) {
        const auto blocks = random_weights(type, n, k, 1);
        const auto expected = dequantized(type, blocks, n * k);
        Problem problem(table, type, blocks, n, k, std::vector<float>(static_cast<size_t>(k)));
        std::vector<float> row(static_cast<std::size_t>(k));
        for (std::int64_t r = 0; r < n; ++r) {
          problem.kernels->unpack_row(problem.packed.data(), n, k, r, row.data());
          for (std::int64_t i = 0; i < k; ++i) {
            // Rounded twice here and there in another order: a few units in the last place of the
            // largest value that a type's formula passes through.
            ASSERT_NEAR(row[static_cast<std::size_t>(i)],
                        expected[static_cast<std::size_t>(r * k + i)], 2e-6)
                << name(type, Isa::kScalar, n, k, 1) << " row " << r << " column " << i;
          }
        }
      }
    }
  }
}

TEST(Packing, RangesPackedApartEqualTheWhole) {
  const KernelTable table = select_kernels(Isa::kScalar);
  for (const DType type : product_types()) {
    const std::int64_t n = 53;
    const std::int64_t k = 256;
    const auto blocks = random_weights(type, n, k, 2);
    const MatmulKernels* kernels = table.find_matmul(type);
    const std::size_t bytes = kernels->packed_bytes(n, k);
    Buffer whole(bytes);
    Buffer parts(bytes);
    kernels->pack(blocks.data(), n, k, 0, n, whole.data());
    kernels->pack(blocks.data(), n, k, 32, n, parts.data());
    kernels->pack(blocks.data(), n, k, 0, 32, parts.data());
    EXPECT_EQ(std::memcmp(whole.data(), parts.data(), bytes), 0) << tensor::to_string(type);
  }
}

TEST(Packing, IsAboutAsLargeAsTheFile) {
  const KernelTable table = select_kernels(Isa::kScalar);
  for (const DType type : product_types()) {
    const auto file = tensor::bytes_for(type, 1536 * 576).value();
    const auto packed = table.find_matmul(type)->packed_bytes(576, 1536);
    EXPECT_LE(static_cast<double>(packed), 1.2 * static_cast<double>(file))
        << tensor::to_string(type);
  }
}

TEST(Prepare, EveryIsaGivesTheScalarsBits) {
  for (const std::int64_t k : {32, 64, 80, 96, 576, 640, 1536}) {
    std::vector<float> x = random_floats(k, 3);
    for (int i = 0; i < 32; ++i) x[static_cast<std::size_t>(i)] = 0;  // a block of zeros
    x.back() = 1e-30F;
    for (const Isa isa : host_isas()) {
      const KernelTable table = select_kernels(isa);
      const std::size_t bytes = table.activation_bytes(ActivationKind::kInt8, k);
      EXPECT_EQ(bytes % 64, 0U);
      Buffer expected(bytes);
      Buffer actual(bytes);
      select_kernels(Isa::kScalar).prepare(ActivationKind::kInt8, x.data(), k, expected.data());
      table.prepare(ActivationKind::kInt8, x.data(), k, actual.data());
      for (std::int64_t b = 0; b < int8_blocks(k); ++b) {
        EXPECT_EQ(std::memcmp(expected.as<Int8Block>() + b, actual.as<Int8Block>() + b, 60), 0)
            << to_string(isa) << " k=" << k << " block " << b;
      }
    }
  }
}

// The activations that the products really see, as floats.
std::vector<float> seen_activations(Problem& problem, const std::vector<float>& x) {
  if (problem.kernels->activation == ActivationKind::kF32) return x;
  std::vector<float> seen(x.size());
  for (std::int64_t r = 0; r < problem.m; ++r) {
    const auto* row = reinterpret_cast<const Int8Block*>(
        problem.activations.as<std::byte>() + static_cast<std::size_t>(r) * problem.row_bytes);
    for (std::int64_t i = 0; i < problem.k; ++i) {
      const Int8Block& block = row[i / kBlock];
      seen[static_cast<std::size_t>(r * problem.k + i)] = block.scale * block.q[i % kBlock];
    }
  }
  return seen;
}

// Tolerance: 1e-5 of the sum of the products' magnitudes, against a float64 product of the
// dequantised values: room for float32 sums of at most 1536 terms, none for a wrong value.
void expect_product(Problem& problem, DType type, Isa isa, const std::vector<std::byte>& blocks,
                    const std::vector<float>& x) {
  const auto w = dequantized(type, blocks, problem.n * problem.k);
  const auto seen = seen_activations(problem, x);
  std::vector<float> out(static_cast<std::size_t>(problem.m * problem.n), -1.0F);
  problem.run(out.data(), 0, problem.m, 0, problem.n);
  for (std::int64_t r = 0; r < problem.m; ++r) {
    for (std::int64_t j = 0; j < problem.n; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t i = 0; i < problem.k; ++i) {
        const double product = static_cast<double>(w[static_cast<std::size_t>(j * problem.k + i)]) *
                               seen[static_cast<std::size_t>(r * problem.k + i)];
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(out[static_cast<std::size_t>(r * problem.n + j)], sum, 1e-5 * magnitude + 1e-12)
          << name(type, isa, problem.n, problem.k, problem.m) << " at " << r << "," << j;
    }
  }
}

TEST(Matmul, EqualsTheDoubleProductOfDequantisedValues) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const DType type : product_types()) {
      for (const std::int64_t k : columns_for(type)) {
        for (const auto& [n, m] : {std::pair{1, 1}, {16, 2}, {17, 3}, {50, 7}, {80, 19}}) {
          const auto blocks = random_weights(type, n, k, 7);
          const auto x = random_floats(m * k, 11);
          Problem problem(table, type, blocks, n, k, x);
          expect_product(problem, type, isa, blocks, x);
        }
      }
    }
  }
}

TEST(Matmul, ExtremeValuesDoNotSaturate) {
  // Every quant at either end and every activation at +-127: the largest integer sums there are.
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const std::uint8_t fill : {0x00, 0xFF, 0x80, 0x7F}) {
      for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ5_1, DType::kQ6_K}) {
        const std::int64_t k = 512;
        auto blocks = random_weights(type, 32, k, 1);
        const auto scales = random_weights(type, 32, k, 1);
        const auto block_bytes = tensor::traits(type).block_bytes;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
          const std::size_t at = i % block_bytes;
          const bool scale = type == DType::kQ6_K ? at >= 192 : at < (type == DType::kQ5_1 ? 4 : 2);
          blocks[i] = scale ? scales[i] : static_cast<std::byte>(fill);
        }
        std::vector<float> x(static_cast<std::size_t>(6 * k), 1.0F);
        for (std::size_t i = 0; i < x.size(); i += 3) x[i] = -1.0F;
        for (std::size_t i = 0; i < static_cast<std::size_t>(2 * k); ++i) x[i] = i < 512 ? 1 : -1;
        Problem problem(table, type, blocks, 32, k, x);
        expect_product(problem, type, isa, blocks, x);
      }
    }
  }
}

TEST(Matmul, RowIsBitwiseTheSameForAnyNumberOfRows) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    const std::int64_t limit = isa == Isa::kScalar ? 6 : 70;
    for (const DType type : product_types()) {
      const std::int64_t n = 48;
      const std::int64_t k = tensor::traits(type).block_values == 256 ? 512 : 96;
      const auto blocks = random_weights(type, n, k, 3);
      const auto x = random_floats(limit * k, 4);
      Problem problem(table, type, blocks, n, k, x);
      std::vector<float> alone(static_cast<std::size_t>(limit * n));
      for (std::int64_t r = 0; r < limit; ++r) problem.run(alone.data() + r * n, r, 1, 0, n);
      for (std::int64_t m = 2; m <= limit; ++m) {
        std::vector<float> out(static_cast<std::size_t>(m * n));
        problem.run(out.data(), 0, m, 0, n);
        ASSERT_EQ(std::memcmp(out.data(), alone.data(), out.size() * 4), 0)
            << name(type, isa, n, k, m);
      }
    }
  }
}

TEST(Matmul, AnySplitOfTheColumnsGivesTheSameBitsAndWritesNothingElse) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const DType type : product_types()) {
      const std::int64_t n = 147;  // not a multiple of the tile
      const std::int64_t k = 256;
      const auto blocks = random_weights(type, n, k, 3);
      for (const std::int64_t m : {1, 5, 17}) {
        Problem problem(table, type, blocks, n, k, random_floats(m * k, 4));
        std::vector<float> whole(static_cast<std::size_t>(m * n + 1), 7.0F);
        problem.run(whole.data(), 0, m, 0, n);
        EXPECT_EQ(whole.back(), 7.0F);
        for (const std::int64_t step : {16, 48, 112}) {
          std::vector<float> parts(static_cast<std::size_t>(m * n + 1), 7.0F);
          for (std::int64_t begin = 0; begin < n; begin += step) {
            problem.run(parts.data(), 0, m, begin, std::min(begin + step, n));
          }
          EXPECT_EQ(whole, parts) << name(type, isa, n, k, m) << " step " << step;
        }
      }
    }
  }
}

TEST(Matmul, LongRowsGoThroughSeveralChunks) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const DType type : {DType::kQ8_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K, DType::kF16}) {
      const std::int64_t k = 256 * 37;
      const auto blocks = random_weights(type, 16, k, 7);
      const auto x = random_floats(9 * k, 11);
      Problem problem(table, type, blocks, 16, k, x);
      expect_product(problem, type, isa, blocks, x);
      std::vector<float> alone(16);
      std::vector<float> all(9 * 16);
      problem.run(all.data(), 0, 9, 0, 16);
      problem.run(alone.data(), 8, 1, 0, 16);
      EXPECT_EQ(std::memcmp(alone.data(), all.data() + 8 * 16, 64), 0) << name(type, isa, 16, k, 9);
    }
  }
}

}  // namespace
}  // namespace spud::kernels::testing
