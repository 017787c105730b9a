// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>

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

constexpr KvType kTypes[] = {KvType::kF16, KvType::kInt8};

// Keys and values of `context` positions, in pages whose unwritten slots hold NaN (as F16).
struct Sequence {
  Shape shape;
  KvType type;
  KvKernels kernels;
  std::vector<float> keys, values, q;
  Buffer storage;
  std::vector<const std::byte*> pages;

  Sequence(const KernelTable& table, KvType kv_type, const Shape& s)
      : shape(s),
        type(kv_type),
        kernels(table.kv[static_cast<std::size_t>(kv_type)]),
        keys(random_floats(s.context * s.head_dim, 1)),
        values(random_floats(s.context * s.head_dim, 2)),
        q(random_floats(s.queries * s.group * s.head_dim, 3)),
        storage(num_pages() * block_bytes()) {
    std::fill_n(storage.as<std::uint16_t>(), num_pages() * block_bytes() / 2,
                std::uint16_t{0x7E00});
    for (std::size_t p = 0; p < num_pages(); ++p) pages.push_back(block(p));
    for (std::int64_t t = 0; t < s.context; ++t) {
      kernels.store(keys.data() + t * s.head_dim, values.data() + t * s.head_dim, s.head_dim,
                    t % kPageTokens, block(static_cast<std::size_t>(t / kPageTokens)));
    }
  }

  std::size_t num_pages() const {
    return static_cast<std::size_t>((shape.context + kPageTokens - 1) / kPageTokens);
  }
  std::size_t block_bytes() const { return kv_block_bytes(type, shape.head_dim); }
  std::byte* block(std::size_t page) { return storage.as<std::byte>() + page * block_bytes(); }
  std::vector<AttentionRow> rows(std::int64_t begin, std::int64_t end, float* out) const {
    std::vector<AttentionRow> rows;
    for (std::int64_t i = begin * shape.group; i < end * shape.group; ++i) {
      const std::int64_t position = shape.context - shape.queries + i / shape.group;
      rows.push_back(
          {.q = q.data() + i * shape.head_dim,
           .out = out + i * shape.head_dim,
           .pages = pages.data(),
           .first = shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0,
           .position = position});
    }
    return rows;
  }

  void attend(std::span<const AttentionRow> rows) const {
    kernels.attention({.rows = rows.data(),
                       .num_rows = std::ssize(rows),
                       .head_dim = shape.head_dim,
                       .scale = 0.17F,
                       .softcap = shape.softcap});
  }

  // Queries [begin, end).
  void run(std::int64_t begin, std::int64_t end, float* out) const {
    attend(rows(begin, end, out));
  }

  // What is read back of the keys or values that were stored.
  std::vector<float> stored(std::vector<float> values_in) const {
    if (type == KvType::kF16) {
      for (float& value : values_in) value = half_to_float(float_to_half(value));
      return values_in;
    }
    for (std::int64_t t = 0; t < shape.context; ++t) {
      const auto at = values_in.begin() + t * shape.head_dim;
      std::vector<float> head = rotated({at, at + shape.head_dim});
      float largest = 0;
      for (const float value : head) largest = std::max(largest, std::fabs(value));
      const float scale = half_to_float(float_to_half(largest / 127.0F));
      for (float& value : head) {
        value = scale * std::clamp(std::nearbyint(value * (1.0F / scale)), -127.0F, 127.0F);
      }
      std::ranges::copy(rotated(std::move(head)), at);
    }
    return values_in;
  }

  // Recursively: the sum and the difference of the halves.
  static void transform(std::span<float> x) {
    if (x.size() == 1) return;
    const std::size_t half = x.size() / 2;
    transform(x.first(half));
    transform(x.subspan(half));
    for (std::size_t i = 0; i < half; ++i) {
      const float a = x[i];
      x[i] += x[i + half];
      x[i + half] = a - x[i + half];
    }
  }
  static std::vector<float> rotated(std::vector<float> head) {
    std::size_t size = 1;
    while (head.size() % (2 * size) == 0) size *= 2;
    for (std::size_t at = 0; at < head.size(); at += size) {
      transform(std::span(head).subspan(at, size));
    }
    for (float& value : head) {
      value *= static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
    }
    return head;
  }

  // The plain softmax in double, of query i and head h.
  std::vector<double> expected(const std::vector<float>& read_keys,
                               const std::vector<float>& read_values, std::int64_t i,
                               std::int64_t h) const {
    const std::int64_t position = shape.context - shape.queries + i;
    const std::int64_t first =
        shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0;
    std::vector<double> out(static_cast<std::size_t>(shape.head_dim));
    double total = 0;
    for (std::int64_t t = first; t <= position; ++t) {
      double score = 0;
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        score += q[static_cast<std::size_t>((i * shape.group + h) * shape.head_dim + d)] *
                 read_keys[static_cast<std::size_t>(t * shape.head_dim + d)];
      }
      score *= 0.17F;
      if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
      total += std::exp(score);
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        out[static_cast<std::size_t>(d)] +=
            std::exp(score) * read_values[static_cast<std::size_t>(t * shape.head_dim + d)];
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
    {.context = 300, .queries = 1, .group = 3, .head_dim = 64},
    {.context = 290, .queries = 150, .group = 2, .head_dim = 32, .window = 130},
};

TEST(Attention, EqualsThePlainSoftmaxInDouble) {
  for (const Isa isa : host_isas()) {
    for (const KvType type : kTypes) {
      for (const Shape& shape : kShapes) {
        const Sequence sequence(select_kernels(isa), type, shape);
        std::vector<float> out(sequence.q.size());
        sequence.run(0, shape.queries, out.data());
        const auto keys = sequence.stored(sequence.keys);
        const auto values = sequence.stored(sequence.values);
        for (std::int64_t i = 0; i < shape.queries; ++i) {
          for (std::int64_t h = 0; h < shape.group; ++h) {
            const auto expected = sequence.expected(keys, values, i, h);
            for (std::int64_t d = 0; d < shape.head_dim; ++d) {
              const auto at = (i * shape.group + h) * shape.head_dim + d;
              // Scores reach 10: their rounding alone gives 1e-6 relative. Of int8, the queries'
              // 15 bits and the probabilities' 14.
              ASSERT_NEAR(out[static_cast<std::size_t>(at)], expected[static_cast<std::size_t>(d)],
                          type == KvType::kF16 ? 2e-5 : 1e-3)
                  << to_string(isa) << " " << to_string(type) << " context " << shape.context
                  << " query " << i;
            }
          }
        }
      }
    }
  }
}

TEST(Attention, StoredBytesAreTheSameOnEveryIsa) {
  for (const KvType type : kTypes) {
    for (const Shape& shape : kShapes) {
      Sequence scalar(scalar_kernels(), type, shape);
      for (const Isa isa : host_isas()) {
        Sequence other(select_kernels(isa), type, shape);
        EXPECT_EQ(std::memcmp(scalar.storage.data(), other.storage.data(),
                              scalar.num_pages() * scalar.block_bytes()),
                  0)
            << to_string(isa) << " " << to_string(type) << " head of " << shape.head_dim;
      }
    }
  }
}

TEST(Attention, AnySplitOfTheRowsGivesTheSameBits) {
  for (const Isa isa : host_isas()) {
    for (const KvType type : kTypes) {
      for (const Shape& shape : kShapes) {
        const Sequence sequence(select_kernels(isa), type, shape);
        std::vector<float> whole(sequence.q.size());
        sequence.run(0, shape.queries, whole.data());
        for (const std::int64_t step : {1, 3, 8, 32}) {
          std::vector<float> parts(sequence.q.size());
          for (std::int64_t i = 0; i < shape.queries; i += step) {
            sequence.run(i, std::min(i + step, shape.queries), parts.data());
          }
          EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * 4), 0)
              << to_string(isa) << " " << to_string(type) << " context " << shape.context
              << " step " << step;
        }
      }
    }
  }
}

// Sequences that share their first pages, in one call and each with a copy of its own.
TEST(Attention, SharedPagesGiveTheSameBitsAsCopies) {
  for (const Isa isa : host_isas()) {
    for (const KvType type : kTypes) {
      for (const auto& [head_dim, context, common] :
           {std::array{64, 120, 2}, std::array{256, 120, 2}, std::array{64, 400, 6},
            std::array{64, 300, 8}}) {
        const Shape shape{.context = context, .queries = 7, .group = 3, .head_dim = head_dim};
        const Sequence one(select_kernels(isa), type, shape);
        std::vector<float> alone(one.q.size());
        one.run(0, shape.queries, alone.data());
        // Five sequences: some common pages, then each its own copy of the rest.
        constexpr int kSequences = 5;
        std::vector<Sequence> copies;
        copies.reserve(kSequences);
        for (int s = 0; s < kSequences; ++s) copies.emplace_back(select_kernels(isa), type, shape);
        std::vector<std::vector<const std::byte*>> pages(kSequences, one.pages);
        std::vector<std::vector<float>> out(kSequences, std::vector<float>(one.q.size()));
        std::vector<AttentionRow> rows;
        for (std::size_t s = 0; s < kSequences; ++s) {
          for (auto p = static_cast<std::size_t>(common); p < one.pages.size(); ++p)
            pages[s][p] = copies[s].block(p);
          for (AttentionRow row : one.rows(0, shape.queries, out[s].data())) {
            row.pages = pages[s].data();
            rows.push_back(row);
          }
        }
        one.attend(rows);
        for (const auto& each : out) {
          EXPECT_EQ(std::memcmp(each.data(), alone.data(), alone.size() * 4), 0)
              << to_string(isa) << " " << to_string(type) << " head of " << head_dim;
        }
      }
    }
  }
}

// What another sequence holds behind the common page may be anything, also infinite.
TEST(Attention, APageThatOnlyAnotherSequenceSeesIsNotMet) {
  for (const Isa isa : host_isas()) {
    for (const KvType type : kTypes) {
      Sequence other(select_kernels(isa), type,
                     {.context = 40, .queries = 10, .group = 1, .head_dim = 64});
      const AttentionRow mine_of_other = other.rows(0, 1, nullptr)[0];  // sees the first page only
      std::vector<float> alone(64);
      AttentionRow mine = mine_of_other;
      mine.out = alone.data();
      other.attend({&mine, 1});

      other.values.assign(other.values.size(), std::numeric_limits<float>::infinity());
      for (std::int64_t t = 35; t < 40; ++t) {
        other.kernels.store(other.keys.data(), other.values.data(), 64, t % kPageTokens,
                            other.block(1));
      }
      std::vector<float> ignored(other.q.size());
      std::vector<AttentionRow> rows = other.rows(0, 10, ignored.data());
      const std::vector<const std::byte*> my_pages = {other.block(0)};
      std::vector<float> together(64);
      mine.pages = my_pages.data();
      mine.out = together.data();
      rows.push_back(mine);
      other.attend(rows);
      EXPECT_EQ(std::memcmp(alone.data(), together.data(), 64 * sizeof(float)), 0)
          << to_string(isa) << " " << to_string(type);
    }
  }
}

TEST(Attention, ALargeScoreNeitherOverflowsNorLosesTheOthers) {
  for (const Isa isa : host_isas()) {
    for (const KvType type : kTypes) {
      Sequence sequence(select_kernels(isa), type,
                        {.context = 70, .queries = 1, .group = 1, .head_dim = 16});
      for (float& q : sequence.q) q *= 1000.0F;
      std::vector<float> out(16);
      sequence.run(0, 1, out.data());
      for (const float value : out) EXPECT_TRUE(std::isfinite(value)) << to_string(isa);
    }
  }
}

// Damaged weights must end a generation with an error, not with quiet nonsense.
TEST(Attention, AValueThatIsNotFiniteIsNotLost) {
  for (const Isa isa : host_isas()) {
    for (const KvType type : kTypes) {
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        Sequence sequence(select_kernels(isa), type,
                          {.context = 40, .queries = 1, .group = 1, .head_dim = 16});
        sequence.values[5] = bad;
        sequence.kernels.store(sequence.keys.data(), sequence.values.data(), 16, 0,
                               sequence.block(0));
        std::vector<float> out(16);
        sequence.run(0, 1, out.data());
        EXPECT_FALSE(std::isfinite(out[5])) << to_string(isa) << " " << to_string(type);
      }
    }
  }
}

TEST(Attention, ZeroKeysAndValuesStayZero) {
  for (const Isa isa : host_isas()) {
    for (const KvType type : kTypes) {
      Sequence sequence(select_kernels(isa), type,
                        {.context = 1, .queries = 1, .group = 1, .head_dim = 16});
      const std::vector<float> zero(16, 0.0F);
      sequence.kernels.store(zero.data(), zero.data(), 16, 0, sequence.block(0));
      std::vector<float> out(16, 1.0F);
      sequence.run(0, 1, out.data());
      EXPECT_EQ(out, zero) << to_string(isa) << " " << to_string(type);
    }
  }
}

}  // namespace
}  // namespace spud::kernels::testing
