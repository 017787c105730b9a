// SPDX-License-Identifier: Apache-2.0
// Search of scale and offset together (Q4_1, Q5_1). For fixed codes the best pair solves two linear
// equations in five weighted sums. Trials take the range of the block, cut by a few per cent at
// either end; then codes and pair alternate, with both rounded to half, while the error falls.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quantize/blocks.hpp"
#include "quantize/vec4.hpp"

namespace spud::quantize::internal {
namespace {

constexpr int kRefinements = 4;
// Shares of the range cut off at one end.
constexpr std::array<float, 5> kCuts = {-0.02F, 0.01F, 0.05F, 0.09F, 0.14F};

struct Line {
  float scale = 0;
  float offset = 0;
};

// Sums that do not depend on the codes are made once.
struct Fixed {
  float w = 0;
  float wx = 0;
};

struct Trial {
  Line line;
  float gain = 0;  // how much sum(w x x) shrinks; the largest wins
};

float as_stored(float value) noexcept { return half_to_float(float_to_half(value)); }

// Nearest codes for `line`, then the best line for those codes.
Trial fit(const float* x, const float* weights, const Fixed& fixed, Line line, float max_code) {
  Vec4 wq = all4(0);
  Vec4 wqq = all4(0);
  Vec4 wxq = all4(0);
  const Vec4 inverse = all4(1.0F / line.scale);
  const Vec4 offset = all4(line.offset);
  for (std::size_t i = 0; i < kBlock; i += 4) {
    const Vec4 value = load4(x + i);
    const Vec4 code = round4(clamp4((value - offset) * inverse, all4(0), all4(max_code)));
    const Vec4 weighted = load4(weights + i) * code;
    wq += weighted;
    wqq += weighted * code;
    wxq += weighted * value;
  }
  const double q = sum4(wq);
  const double qq = sum4(wqq);
  const double xq = sum4(wxq);
  const double determinant = fixed.w * qq - q * q;
  // One code for all weighted values (up to rounding): no slope to fit.
  if (determinant <= 1e-6 * fixed.w * qq) return {};
  const double scale = (fixed.w * xq - fixed.wx * q) / determinant;
  const double shift = (fixed.wx - scale * q) / fixed.w;
  return {{static_cast<float>(scale), static_cast<float>(shift)},
          static_cast<float>(scale * xq + shift * fixed.wx)};
}

double error_of(const Block& block, const float* x, const float* weights) {
  double error = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double value = static_cast<double>(block.scale) * block.codes[i] + block.offset;
    error += weights[i] * (x[i] - value) * (x[i] - value);
  }
  return error;
}

Block assign_codes(const float* x, Line line, int max_code) {
  Block block{line.scale, line.offset, {}};
  const float inverse = line.scale != 0 ? 1.0F / line.scale : 0.0F;
  const auto limit = static_cast<float>(max_code);
  for (std::size_t i = 0; i < kBlock; ++i) {
    const float code = round1(std::clamp((x[i] - line.offset) * inverse, 0.0F, limit));
    block.codes[i] = static_cast<std::uint8_t>(code);
  }
  return block;
}

// Best offset for these codes once the scale is rounded.
float best_offset(const Block& block, const float* x, const float* weights) {
  double sum = 0;
  double weight = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    sum += weights[i] * (x[i] - static_cast<double>(block.scale) * block.codes[i]);
    weight += weights[i];
  }
  return static_cast<float>(sum / weight);
}

void take_better(const Block& block, const float* x, const float* weights, Block& best,
                 double& best_error) {
  const double error = error_of(block, x, weights);
  if (error >= best_error) return;
  best = block;
  best_error = error;
}

}  // namespace

Block search_affine_block(int max_code, const float* x, const float* weights) noexcept {
  Block best = reference_block(max_code == 15 ? tensor::DType::kQ4_1 : tensor::DType::kQ5_1, x);
  best.scale = as_stored(best.scale);
  best.offset = as_stored(best.offset);
  double best_error = error_of(best, x, weights);
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  const float range = *high - *low;
  if (best.scale == 0 || !(range > 0)) return best;

  // In units of the range, from its lower end: see search.cpp.
  std::array<float, kBlock> unit;
  Fixed fixed;
  for (std::size_t i = 0; i < kBlock; ++i) {
    unit[i] = (x[i] - *low) / range;
    fixed.w += weights[i];
    fixed.wx += weights[i] * unit[i];
  }
  // The plain codes with the best offset: all there is to win when one value has all the weight.
  Block shifted = best;
  shifted.offset = as_stored(best_offset(shifted, x, weights));
  if (std::isfinite(shifted.offset)) take_better(shifted, x, weights, best, best_error);

  const auto limit = static_cast<float>(max_code);
  Trial chosen;
  for (const float low_cut : kCuts) {
    for (const float high_cut : kCuts) {
      const Line line{(1.0F - low_cut - high_cut) / limit, low_cut};
      const Trial trial = fit(unit.data(), weights, fixed, line, limit);
      if (trial.gain > chosen.gain) chosen = trial;
    }
  }
  for (int round = 0; round < kRefinements && chosen.line.scale > 0; ++round) {
    const Line line{as_stored(chosen.line.scale * range),
                    as_stored(*low + chosen.line.offset * range)};
    if (!std::isfinite(line.scale) || !std::isfinite(line.offset)) break;
    const double before = best_error;
    Block block = assign_codes(x, line, max_code);
    take_better(block, x, weights, best, best_error);
    block.offset = as_stored(best_offset(block, x, weights));
    take_better(block, x, weights, best, best_error);
    take_better(assign_codes(x, {block.scale, block.offset}, max_code), x, weights, best,
                best_error);
    if (best_error >= before) break;
    chosen = fit(unit.data(), weights, fixed, chosen.line, limit);
  }
  return best;
}

}  // namespace spud::quantize::internal
