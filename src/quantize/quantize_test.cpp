// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/sha256.hpp"
#include "quantize/golden_blocks.hpp"
#include "quantize/half.hpp"

namespace spud::quantize {
namespace {

using tensor::DType;
using ::testing::HasSubstr;

constexpr DType kBlockTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
                                 DType::kQ5_0, DType::kQ5_1, DType::kIQ4_NL};

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::vector<std::byte> quantized(DType type, std::span<const float> values,
                                 const QuantizeOptions& options = {}) {
  std::vector<std::byte> out(*tensor::bytes_for(type, values.size()));
  const auto result = quantize_row(type, values, options, out);
  EXPECT_TRUE(result) << result.error().message();
  return out;
}

std::vector<float> restored(DType type, std::span<const std::byte> blocks, std::size_t count) {
  std::vector<float> values(count);
  EXPECT_TRUE(dequantize(type, blocks, values));
  return values;
}

double weighted_error(DType type, std::span<const float> values, std::span<const float> weights,
                      const QuantizeOptions& options) {
  const auto back = restored(type, quantized(type, values, options), values.size());
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double rest = static_cast<double>(values[i]) - back[i];
    error += (weights.empty() ? 1.0F : weights[i]) * rest * rest;
  }
  return error;
}

std::vector<float> random_values(std::size_t count, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(Half, EveryHalfSurvivesTheWayThroughFloat) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      ASSERT_EQ(float_to_half(value), half) << value;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3C00);      // half-way: to even
  EXPECT_EQ(float_to_half(1.0F + 3 * 0x1p-11F), 0x3C02);  // half-way: to even
  EXPECT_EQ(float_to_half(1.0F + 0x1.002p-11F), 0x3C01);  // just above
  EXPECT_EQ(float_to_half(65519.0F), 0x7BFF);             // still 65504
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);             // infinity
  EXPECT_EQ(float_to_half(0x1p-25F), 0x0000);             // half of the smallest: to even
  EXPECT_EQ(float_to_half(-0x1.8p-24F), 0x8002);
  EXPECT_EQ(float_to_bfloat16(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(float_to_bfloat16(1.0F + 3 * 0x1p-8F), 0x3F82);
  EXPECT_EQ(bfloat16_to_float(0x3F82), 1.015625F);
}

TEST(Dequantize, ReadsEveryTypeAsThePythonPackageDoes) {
  for (const GoldenBlock& golden : kGoldenBlocks) {
    SCOPED_TRACE(std::string(tensor::to_string(golden.type)));
    const auto block = from_hex(golden.block);
    const auto values = restored(golden.type, block, tensor::traits(golden.type).block_values);
    EXPECT_EQ(values[0], golden.first);
    EXPECT_EQ(values[1], golden.second);
    EXPECT_EQ(values.back(), golden.last);
    EXPECT_EQ(sha256_hex(std::as_bytes(std::span(values))), golden.digest);
  }
}

TEST(Dequantize, RefusesWrongSizesAndTypesWithoutValues) {
  std::vector<float> values(32);
  const std::vector<std::byte> bytes(33);
  EXPECT_THAT(dequantize(DType::kQ8_0, bytes, values).error().message(),
              HasSubstr("32 values of type Q8_0 do not fill 33 bytes"));
  EXPECT_EQ(dequantize(DType::kI32, bytes, values).error().code(), ErrorCode::kUnimplemented);
  EXPECT_FALSE(can_dequantize(DType::kI8));
  EXPECT_TRUE(can_dequantize(DType::kQ3_K));
}

TEST(Quantize, RoundsAsTheReferenceDoesBitForBit) {
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(sample_value(i));
  for (const GoldenRounding& golden : kGoldenRoundings) {
    SCOPED_TRACE(std::string(tensor::to_string(golden.type)));
    EXPECT_EQ(to_hex(quantized(golden.type, values)), golden.block);
  }
}

TEST(Quantize, ZerosStayZeroOnEveryPath) {
  const std::vector<float> zeros(64, 0.0F);
  const std::vector<float> importance(64, 1.0F);
  for (const DType type : kBlockTypes) {
    for (const QuantizeOptions& options : {QuantizeOptions{}, QuantizeOptions{.search_scale = true},
                                           QuantizeOptions{.importance = importance}}) {
      EXPECT_THAT(restored(type, quantized(type, zeros, options), 64), ::testing::Each(0.0F));
    }
  }
}

TEST(Quantize, SearchIsNeverWorseThanRoundingAndUsuallyBetter) {
  const auto values = random_values(32 * 200, 1, 0.02F);
  auto weights = random_values(values.size(), 2, 1.0F);
  for (float& weight : weights) weight *= weight;
  for (const DType type : kBlockTypes) {
    SCOPED_TRACE(std::string(tensor::to_string(type)));
    double plain_sum = 0;
    double searched_sum = 0;
    for (std::size_t i = 0; i < values.size(); i += 32) {
      const auto block = std::span(values).subspan(i, 32);
      const auto weight = std::span(weights).subspan(i, 32);
      const double plain = weighted_error(type, block, weight, {});
      const double searched = weighted_error(type, block, weight, {.importance = weight});
      EXPECT_LE(searched, plain * (1 + 1e-9));
      EXPECT_LE(weighted_error(type, block, {}, {.search_scale = true}),
                weighted_error(type, block, {}, {}) * (1 + 1e-9));
      plain_sum += plain;
      searched_sum += searched;
    }
    EXPECT_LT(searched_sum, 0.9 * plain_sum);
  }
}

// Against brute force over a much finer grid of scales: what the search leaves on the table.
TEST(Quantize, SearchComesCloseToTheBestScaleThereIs) {
  const auto values = random_values(32 * 40, 3, 1.0F);
  double found = 0;
  double best = 0;
  for (std::size_t i = 0; i < values.size(); i += 32) {
    const auto block = std::span(values).subspan(i, 32);
    found += weighted_error(DType::kQ4_0, block, {}, {.search_scale = true});
    double least = std::numeric_limits<double>::infinity();
    for (int step = -4000; step <= 4000; ++step) {
      const double scale = step * 1.5e-4;
      double error = 0;
      for (const float value : block) {
        const double level = scale == 0 ? 0 : std::clamp(std::nearbyint(value / scale), -8.0, 7.0);
        error += (value - level * scale) * (value - level * scale);
      }
      least = std::min(least, error);
    }
    best += least;
  }
  EXPECT_LT(found, 1.01 * best);
}

TEST(Quantize, ImportanceMovesTheErrorToUnimportantColumns) {
  const auto values = random_values(32, 4, 1.0F);
  std::vector<float> importance(32, 0.001F);
  importance[7] = 1000.0F;
  for (const DType type : kBlockTypes) {
    SCOPED_TRACE(std::string(tensor::to_string(type)));
    const auto plain = restored(type, quantized(type, values), 32);
    const auto guided = restored(type, quantized(type, values, {.importance = importance}), 32);
    EXPECT_LE(std::fabs(guided[7] - values[7]), std::fabs(plain[7] - values[7]));
    EXPECT_LT(std::fabs(guided[7] - values[7]), 2e-3F);
  }
}

TEST(Quantize, AcceptsImportanceThatIsZeroEverywhereOrInParts) {
  const auto values = random_values(64, 5, 1.0F);
  const std::vector<float> none(64, 0.0F);
  std::vector<float> one(64, 0.0F);
  one[3] = 1e-30F;
  for (const DType type : kBlockTypes) {
    EXPECT_EQ(quantized(type, values, {.importance = none}),
              quantized(type, values, {.search_scale = true}));
    const auto back = restored(type, quantized(type, values, {.importance = one}), 64);
    EXPECT_NEAR(back[3], values[3], 1e-2F);
    for (const float value : back) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Quantize, WorksAtTheEdgesOfTheNumberRange) {
  for (const float scale : {1e-38F, 1e-30F, 1e-8F, 1e5F}) {
    const auto values = random_values(32, 6, scale);
    for (const DType type : kBlockTypes) {
      for (const bool search : {false, true}) {
        std::vector<std::byte> out(*tensor::bytes_for(type, 32));
        const auto result = quantize_row(type, values, {.search_scale = search}, out);
        if (!result) {  // only an offset of more than 65504 cannot be stored here
          EXPECT_TRUE(type == DType::kQ4_1 || type == DType::kQ5_1);
          EXPECT_THAT(result.error().message(), HasSubstr("too large"));
          continue;
        }
        for (const float value : restored(type, out, 32)) EXPECT_TRUE(std::isfinite(value));
      }
    }
  }
}

TEST(Quantize, NamesValuesThatCannotBeStored) {
  std::vector<float> values(32, 1.0F);
  std::vector<std::byte> out(128);
  const auto message = [&](DType type) {
    const auto result =
        quantize_row(type, values, {}, std::span(out).first(*tensor::bytes_for(type, 32)));
    return result ? std::string("accepted") : result.error().message();
  };
  values[9] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message(DType::kQ4_0), HasSubstr("value nan at index 9 is not finite"));
  EXPECT_THAT(message(DType::kF32), HasSubstr("index 9"));
  values[9] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(DType::kBF16), HasSubstr("value -inf at index 9"));
  values[9] = 70000.0F;
  EXPECT_THAT(message(DType::kF16), HasSubstr("value 70000 at index 9 is too large for F16"));
  EXPECT_EQ(message(DType::kBF16), "accepted");
  values[9] = 3e38F;
  EXPECT_THAT(message(DType::kQ8_0), HasSubstr("index 9 is too large for Q8_0"));
  values[9] = std::numeric_limits<float>::max();
  EXPECT_THAT(message(DType::kBF16), HasSubstr("too large for BF16"));
}

TEST(Quantize, RefusesWrongSizesTypesAndImportance) {
  std::vector<float> values(32, 1.0F);
  std::vector<float> importance(31, 1.0F);
  std::vector<std::byte> out(18);
  EXPECT_THAT(quantize_row(DType::kQ4_0, std::span(values).first(31), {}, out).error().message(),
              HasSubstr("do not fill"));
  EXPECT_EQ(quantize_row(DType::kQ4_K, values, {}, out).error().code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(quantize_row(DType::kQ4_0, values, {.importance = importance}, out).error().message(),
              HasSubstr("31 importance values for rows of 32"));
  importance.assign(32, -1.0F);
  EXPECT_THAT(quantize_row(DType::kQ4_0, values, {.importance = importance}, out).error().message(),
              HasSubstr("must be finite and not negative"));
}

}  // namespace
}  // namespace spud::quantize
