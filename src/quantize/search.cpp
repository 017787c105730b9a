// SPDX-License-Identifier: Apache-2.0
// Scale search. For fixed codes with levels q the best scale is d = sum(w x q) / sum(w q q), and
// the error it leaves is sum(w x x) - sum(w x q)^2 / sum(w q q). So: try a grid of scales (both
// signs where the levels are not symmetric), keep the one with the largest gain sum(w x q)^2 /
// sum(w q q), then alternate "nearest codes for the stored scale" and "best scale for the codes"
// until nothing improves. Values are divided by the block's extreme one first: sums stay in range
// whatever the model's units.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quantize/blocks.hpp"
#include "quantize/vec4.hpp"

namespace spud::quantize::internal {
namespace {

using tensor::DType;

constexpr int kRefinements = 4;

struct Fit {
  float wxq = 0;  // sum of weight * value * level
  float wqq = 0;  // sum of weight * level^2
  float gain() const noexcept { return wqq > 0 ? wxq * wxq / wqq : 0; }
};

// Whole-number levels from `low` to `high`, stored as code = level + bias.
struct LinearLevels {
  float low;
  float high;
  int bias;

  // Nearest levels for values x * inverse.
  Fit fit(const float* x, const float* weights, float inverse) const noexcept {
    Vec4 wxq = all4(0);
    Vec4 wqq = all4(0);
    for (std::size_t i = 0; i < kBlock; i += 4) {
      const Vec4 value = load4(x + i);
      const Vec4 level = clamp4(round4(clamp4(value * all4(inverse), all4(-1024), all4(1024))),
                                all4(low), all4(high));
      const Vec4 weighted = load4(weights + i) * level;
      wxq += weighted * value;
      wqq += weighted * level;
    }
    return {sum4(wxq), sum4(wqq)};
  }
  std::uint8_t code(float scaled) const noexcept {
    const float level = round1(std::clamp(scaled, low, high));
    return static_cast<std::uint8_t>(static_cast<int>(level) + bias);
  }
  float level(std::uint8_t code) const noexcept {
    return static_cast<float>(bias == 0 ? static_cast<std::int8_t>(code) : code - bias);
  }
};

// Nearest level of every whole number from -128 to 127; exact but at whole-number ties.
constexpr std::array<float, 256> make_iq4_table() {
  std::array<float, 256> table{};
  for (int value = -128; value < 128; ++value) {
    int best = kIq4Levels[0];
    for (const int level : kIq4Levels) {
      const int near = level > value ? level - value : value - level;
      const int so_far = best > value ? best - value : value - best;
      if (near < so_far) best = level;
    }
    table[static_cast<std::size_t>(value + 128)] = static_cast<float>(best);
  }
  return table;
}
constexpr auto kIq4Table = make_iq4_table();

struct Iq4Levels {
  static Fit fit(const float* x, const float* weights, float inverse) noexcept {
    Vec4 wxq = all4(0);
    Vec4 wqq = all4(0);
    for (std::size_t i = 0; i < kBlock; i += 4) {
      const Vec4 value = load4(x + i);
      const Vec4 shifted = clamp4(value * all4(inverse), all4(-128), all4(127)) + all4(128.5F);
      const IntVec4 at = to_int4(shifted);
      const float* table = kIq4Table.data();
      const Vec4 level = {table[at[0]], table[at[1]], table[at[2]], table[at[3]]};
      const Vec4 weighted = load4(weights + i) * level;
      wxq += weighted * value;
      wqq += weighted * level;
    }
    return {sum4(wxq), sum4(wqq)};
  }
  static std::uint8_t code(float scaled) noexcept { return nearest_iq4(scaled); }
  static float level(std::uint8_t code) noexcept { return static_cast<float>(kIq4Levels[code]); }
};

// Trials: the extreme value is mapped to targets from `first` to `last`, in both signs if asked.
struct Grid {
  float first;
  float last;
  float step;
  bool both_signs;
};

template <typename Levels>
void assign_codes(const Levels& levels, const float* x, float scale, Block& block) noexcept {
  block.scale = scale;
  const float inverse = scale != 0 ? 1.0F / scale : 0.0F;
  for (std::size_t i = 0; i < kBlock; ++i) block.codes[i] = levels.code(x[i] * inverse);
}

template <typename Levels>
double error_of(const Levels& levels, const Block& block, const float* x, const float* weights) {
  double error = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double rest = x[i] - static_cast<double>(block.scale) * levels.level(block.codes[i]);
    error += weights[i] * rest * rest;
  }
  return error;
}

// The scale as a reader will see it.
float as_stored(float scale) noexcept { return half_to_float(float_to_half(scale)); }

template <typename Levels>
float best_scale(const Levels& levels, const Block& block, const float* x, const float* weights) {
  double wxq = 0;
  double wqq = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double level = levels.level(block.codes[i]);
    wxq += weights[i] * x[i] * level;
    wqq += weights[i] * level * level;
  }
  return wqq > 0 ? static_cast<float>(wxq / wqq) : 0.0F;
}

// From `scale`: alternate codes and scale while the error falls. Takes over what beats `best`.
template <typename Levels>
void refine(const Levels& levels, const float* x, const float* weights, float scale, Block& best,
            double& best_error) {
  double previous = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRefinements; ++round) {
    const float stored = as_stored(scale);
    if (!std::isfinite(stored)) return;
    Block block;
    assign_codes(levels, x, stored, block);
    const double error = error_of(levels, block, x, weights);
    if (error < best_error) {
      best = block;
      best_error = error;
    }
    if (error >= previous) return;
    previous = error;
    scale = best_scale(levels, block, x, weights);
  }
}

template <typename Levels>
Block search(const Levels& levels, const Grid& grid, Block reference, const float* x,
             const float* weights) {
  const float extreme = *std::max_element(
      x, x + kBlock, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  std::array<float, kBlock> unit;
  for (std::size_t i = 0; i < kBlock; ++i) unit[i] = x[i] / extreme;

  float best_gain = 0;
  float best_unit_scale = 0;
  const auto attempt = [&](float inverse) {
    const Fit fit = levels.fit(unit.data(), weights, inverse);
    if (fit.gain() > best_gain) {
      best_gain = fit.gain();
      best_unit_scale = fit.wxq / fit.wqq;
    }
  };
  for (float target = grid.first; target <= grid.last; target += grid.step) {
    attempt(target);
    if (grid.both_signs) attempt(-target);
  }
  reference.scale = as_stored(reference.scale);
  double best_error = error_of(levels, reference, x, weights);
  Block best = reference;
  refine(levels, x, weights, best_unit_scale * extreme, best, best_error);
  return best;
}

}  // namespace

Block search_block(DType type, const float* x, const float* weights) noexcept {
  const Block reference = reference_block(type, x);
  if (std::all_of(x, x + kBlock, [](float value) { return value == 0; })) return reference;
  switch (type) {
    case DType::kQ8_0:
      return search(LinearLevels{-127, 127, 0}, Grid{119, 134, 1, false}, reference, x, weights);
    case DType::kQ4_0:
      return search(LinearLevels{-8, 7, 8}, Grid{5.5F, 11.5F, 0.25F, true}, reference, x, weights);
    case DType::kQ5_0:
      return search(LinearLevels{-16, 15, 16}, Grid{12.5F, 20, 0.375F, true}, reference, x,
                    weights);
    case DType::kIQ4_NL:
      return search(Iq4Levels{}, Grid{92, 176, 6, true}, reference, x, weights);
    default:
      return search_affine_block(type == DType::kQ4_1 ? 15 : 31, x, weights);
  }
}

}  // namespace spud::quantize::internal
