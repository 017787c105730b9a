// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/kernel_testing.hpp"
#include "kernels/log_sum_exp.hpp"

namespace spud::kernels::testing {
namespace {

const std::int64_t kSizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 576, 1000};
constexpr float kGuard = 123.0F;  // one value past the end, which nobody may touch

// Runs `apply` on a copy of x that lies misaligned by one float.
std::vector<float> misaligned(const std::vector<float>& x,
                              const std::function<void(float*)>& apply) {
  Buffer buffer((x.size() + 1) * 4, 4);
  std::copy(x.begin(), x.end(), buffer.as<float>());
  buffer.as<float>()[x.size()] = kGuard;
  apply(buffer.as<float>());
  EXPECT_EQ(buffer.as<float>()[x.size()], kGuard) << "wrote past the end";
  return {buffer.as<float>(), buffer.as<float>() + x.size()};
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected,
                 double relative, const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], relative * std::fabs(expected[i]) + 1e-30)
        << where << " at " << i << " of " << actual.size();
  }
}

TEST(Elementwise, RmsNormFollowsItsFormula) {
  for (const Isa isa : host_isas()) {
    for (const std::int64_t n : kSizes) {
      if (n == 0) continue;
      const auto x = random_floats(n, 1);
      const auto weight = random_floats(n, 2);
      double sum = 0;
      for (const float v : x) sum += static_cast<double>(v) * v;
      std::vector<double> expected;
      for (std::size_t i = 0; i < x.size(); ++i) {
        expected.push_back(x[i] / std::sqrt(sum / static_cast<double>(n) + 1e-5) * weight[i]);
      }
      const auto y = misaligned(
          x, [&](float* at) { select_kernels(isa).rms_norm(at, weight.data(), n, 1e-5F, at); });
      expect_near(y, expected, 1e-5, to_string(isa));
    }
  }
}

double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(Elementwise, GatedActivationsFollowTheirFormulas) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const std::int64_t n : kSizes) {
      const auto gate = random_floats(n, 1, 4.0F);
      const auto up = random_floats(n, 2);
      std::vector<double> by_silu;
      std::vector<double> by_gelu;
      for (std::size_t i = 0; i < gate.size(); ++i) {
        by_silu.push_back(silu(gate[i]) * up[i]);
        by_gelu.push_back(gelu(gate[i]) * up[i]);
      }
      expect_near(misaligned(gate, [&](float* at) { table.silu_mul(at, up.data(), n); }), by_silu,
                  1e-6, to_string(isa));
      // Far below 0 the tanh form itself cancels in float (the scalar definition): absolute there.
      const auto out = misaligned(gate, [&](float* at) { table.gelu_tanh_mul(at, up.data(), n); });
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], by_gelu[i], 2e-6 * std::fabs(gate[i] * up[i]) + 1e-30);
      }
    }
  }
}

TEST(Elementwise, GatedActivationsOfExtremesAreFinite) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const float x : {-1e30F, -200.0F, 0.0F, 200.0F, 1e10F}) {
      const std::vector<float> one(16, 1.0F);
      std::vector<float> gate(16, x);
      table.silu_mul(gate.data(), one.data(), 16);
      EXPECT_NEAR(gate[0], std::max(x, 0.0F), 1e-30) << to_string(isa) << " " << x;
      gate.assign(16, x);
      table.gelu_tanh_mul(gate.data(), one.data(), 16);
      if (std::fabs(x) < 1e12F) {
        EXPECT_NEAR(gate[0], std::max(x, 0.0F), 1e-30) << to_string(isa) << " " << x;
      }
    }
  }
}

TEST(Elementwise, RopeRotatesPairsAndHalves) {
  for (const Isa isa : host_isas()) {
    for (const auto& [heads, head_dim, rope_dim] :
         {std::tuple{1, 64, 64}, {3, 64, 32}, {2, 256, 256}, {1, 80, 40}, {2, 16, 2}}) {
      const auto x = random_floats(heads * head_dim, 1);
      std::vector<float> cos_sin;
      for (int i = 0; i < rope_dim / 2; ++i) {
        cos_sin.push_back(std::cos(0.3F * static_cast<float>(i)));
        cos_sin.push_back(std::sin(0.3F * static_cast<float>(i)));
      }
      for (const bool interleaved : {false, true}) {
        std::vector<double> expected(x.begin(), x.end());
        for (int h = 0; h < heads; ++h) {
          for (int i = 0; i < rope_dim / 2; ++i) {
            const int a = h * head_dim + (interleaved ? 2 * i : i);
            const int b = h * head_dim + (interleaved ? 2 * i + 1 : i + rope_dim / 2);
            const double c = cos_sin[static_cast<std::size_t>(2 * i)];
            const double s = cos_sin[static_cast<std::size_t>(2 * i + 1)];
            const double xa = x[static_cast<std::size_t>(a)];
            const double xb = x[static_cast<std::size_t>(b)];
            expected[static_cast<std::size_t>(a)] = xa * c - xb * s;
            expected[static_cast<std::size_t>(b)] = xb * c + xa * s;
          }
        }
        const auto out = misaligned(x, [&](float* at) {
          select_kernels(isa).rope(at, heads, head_dim, rope_dim, cos_sin.data(), interleaved);
        });
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], expected[i], 2e-6)
              << to_string(isa) << " " << interleaved << " " << i;
        }
      }
    }
  }
}

TEST(Elementwise, AddAdds) {
  for (const Isa isa : host_isas()) {
    for (const std::int64_t n : kSizes) {
      const auto x = random_floats(n, 1);
      const auto y = random_floats(n, 2);
      const auto out = misaligned(x, [&](float* at) { select_kernels(isa).add(at, y.data(), n); });
      for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], x[i] + y[i]);
    }
  }
}

TEST(Elementwise, LogSumExpIsPreciseOverAVocabulary) {
  for (const Isa isa : host_isas()) {
    for (const std::int64_t n : {1, 16, 17, 1000, 1025, 49152, 262144}) {
      const auto x = random_floats(n, 1, 3.0F);
      double sum = 0;
      for (const float v : x) sum += std::exp(static_cast<double>(v));
      EXPECT_NEAR(log_sum_exp(select_kernels(isa), x.data(), n), std::log(sum), 2e-6)
          << to_string(isa) << " n=" << n;
    }
    const std::vector<float> large(100, 1000.0F);
    EXPECT_NEAR(log_sum_exp(select_kernels(isa), large.data(), 100), 1000 + std::log(100.0), 1e-3);
    const std::vector<float> nothing(33, -std::numeric_limits<float>::infinity());
    EXPECT_EQ(log_sum_exp(select_kernels(isa), nothing.data(), 33), nothing[0]);
  }
}

TEST(Elementwise, FindAtLeastGivesEveryIndexInOrder) {
  for (const Isa isa : host_isas()) {
    for (const std::int64_t n : kSizes) {
      auto x = random_floats(n, 7);
      if (n > 2) x[2] = std::numeric_limits<float>::quiet_NaN();
      std::vector<std::int32_t> expected;
      for (std::int64_t i = 0; i < n; ++i) {
        if (x[static_cast<std::size_t>(i)] >= 0.3F)
          expected.push_back(static_cast<std::int32_t>(i));
      }
      std::vector<std::int32_t> found(static_cast<std::size_t>(n));
      const auto count = select_kernels(isa).find_at_least(x.data(), n, 0.3F, found.data());
      found.resize(static_cast<std::size_t>(count));
      EXPECT_EQ(found, expected) << to_string(isa) << " n=" << n;
    }
  }
}

TEST(Elementwise, ArgmaxFindsTheFirstOfEquals) {
  for (const Isa isa : host_isas()) {
    const KernelTable table = select_kernels(isa);
    for (const std::int64_t n : kSizes) {
      if (n == 0) continue;
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        std::vector<float> x(static_cast<std::size_t>(n), -3.0F);
        x[static_cast<std::size_t>(at)] = -1.0F;
        x.back() = -1.0F;
        EXPECT_EQ(table.argmax(x.data(), n), at) << to_string(isa) << " n=" << n;
      }
    }
  }
}

}  // namespace
}  // namespace spud::kernels::testing
