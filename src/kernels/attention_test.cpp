// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/half.hpp"
#include "kernels/kernel_testing.hpp"

namespace spud::kernels::testing {
namespace {

struct Shape {
  std::int64_t context;  // positions stored
  std::int64_t queries;  // the last ones
  std::int64_t group;
  std::int64_t head_dim;
  std::int64_t window = 0;
  float softcap = 0;
};

// Keys and values of `context` positions, in pages whose unwritten slots hold NaN.
struct Sequence {
  Shape shape;
  std::vector<float> keys, values, q;
  std::vector<std::uint16_t> storage;
  std::vector<const std::uint16_t*> pages;

  Sequence(const KernelTable& table, const Shape& s)
      : shape(s),
        keys(random_floats(s.context * s.head_dim, 1)),
        values(random_floats(s.context * s.head_dim, 2)),
        q(random_floats(s.queries * s.group * s.head_dim, 3)) {
    const std::int64_t num_pages = (s.context + kPageTokens - 1) / kPageTokens;
    const std::int64_t block = 2 * kPageTokens * s.head_dim;
    storage.assign(static_cast<std::size_t>(num_pages * block), 0x7E00);
    for (std::int64_t p = 0; p < num_pages; ++p) pages.push_back(storage.data() + p * block);
    for (std::int64_t t = 0; t < s.context; ++t) {
      table.store_kv(keys.data() + t * s.head_dim, values.data() + t * s.head_dim, s.head_dim,
                     t % kPageTokens, storage.data() + t / kPageTokens * block);
    }
  }

  std::int64_t row_stride() const { return shape.group * shape.head_dim; }

  // Queries [begin, end).
  void run(const KernelTable& table, std::int64_t begin, std::int64_t end, float* out) {
    table.attention({.q = q.data() + begin * row_stride(),
                     .q_stride = row_stride(),
                     .out = out + begin * row_stride(),
                     .out_stride = row_stride(),
                     .pages = pages.data(),
                     .num_queries = end - begin,
                     .first_position = shape.context - shape.queries + begin,
                     .window = shape.window,
                     .group = shape.group,
                     .head_dim = shape.head_dim,
                     .scale = 0.17F,
                     .softcap = shape.softcap});
  }

  double stored(const std::vector<float>& of, std::int64_t t, std::int64_t d) const {
    return half_to_float(float_to_half(of[static_cast<std::size_t>(t * shape.head_dim + d)]));
  }

  // The plain softmax in double, of query i and head h.
  std::vector<double> expected(std::int64_t i, std::int64_t h) const {
    const std::int64_t position = shape.context - shape.queries + i;
    const std::int64_t first =
        shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0;
    std::vector<double> out(static_cast<std::size_t>(shape.head_dim));
    double total = 0;
    for (std::int64_t t = first; t <= position; ++t) {
      double score = 0;
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        score += q[static_cast<std::size_t>(i * row_stride() + h * shape.head_dim + d)] *
                 stored(keys, t, d);
      }
      score *= 0.17F;
      if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
      total += std::exp(score);
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        out[static_cast<std::size_t>(d)] += std::exp(score) * stored(values, t, d);
      }
    }
    for (double& value : out) value /= total;
    return out;
  }
};

const Shape kShapes[] = {
    {.context = 1, .queries = 1, .group = 1, .head_dim = 16},
    {.context = 31, .queries = 1, .group = 3, .head_dim = 64},
    {.context = 33, .queries = 33, .group = 3, .head_dim = 64},
    {.context = 100, .queries = 37, .group = 4, .head_dim = 256},
    {.context = 128, .queries = 5, .group = 16, .head_dim = 48},
    {.context = 200, .queries = 70, .group = 1, .head_dim = 80, .window = 40},
    {.context = 90, .queries = 90, .group = 2, .head_dim = 64, .window = 7, .softcap = 5},
    {.context = 64, .queries = 1, .group = 8, .head_dim = 128, .softcap = 30},
};

TEST(Attention, EqualsThePlainSoftmaxInDouble) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const Shape& shape : kShapes) {
      Sequence sequence(table, shape);
      std::vector<float> out(sequence.q.size());
      sequence.run(table, 0, shape.queries, out.data());
      for (std::int64_t i = 0; i < shape.queries; ++i) {
        for (std::int64_t h = 0; h < shape.group; ++h) {
          const auto expected = sequence.expected(i, h);
          for (std::int64_t d = 0; d < shape.head_dim; ++d) {
            const auto at = i * sequence.row_stride() + h * shape.head_dim + d;
            ASSERT_NEAR(out[static_cast<std::size_t>(at)], expected[static_cast<std::size_t>(d)],
                        2e-5)  // scores reach 10: their rounding alone gives 1e-6 relative
                << to_string(isa) << " context " << shape.context << " query " << i;
          }
        }
      }
    }
  }
}

TEST(Attention, AnySplitOfTheQueriesGivesTheSameBits) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const Shape& shape : kShapes) {
      Sequence sequence(table, shape);
      std::vector<float> whole(sequence.q.size());
      sequence.run(table, 0, shape.queries, whole.data());
      for (const std::int64_t step : {1, 3, 8, 32}) {
        std::vector<float> parts(sequence.q.size());
        for (std::int64_t i = 0; i < shape.queries; i += step) {
          sequence.run(table, i, std::min(i + step, shape.queries), parts.data());
        }
        EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * 4), 0)
            << to_string(isa) << " context " << shape.context << " step " << step;
      }
    }
  }
}

TEST(Attention, ALargeScoreNeitherOverflowsNorLosesTheOthers) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    Sequence sequence(table, {.context = 70, .queries = 1, .group = 1, .head_dim = 16});
    for (float& q : sequence.q) q *= 1000.0F;
    std::vector<float> out(16);
    sequence.run(table, 0, 1, out.data());
    for (const float value : out) EXPECT_TRUE(std::isfinite(value)) << to_string(isa);
  }
}

}  // namespace
}  // namespace spud::kernels::testing
