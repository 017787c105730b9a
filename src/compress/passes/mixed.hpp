// SPDX-License-Identifier: Apache-2.0
// Which tensors can live with 4 bits? Every weight matrix alone is brought to 4 bits and the rise
// in KL divergence against the original is measured on calibration text. Tensors are then taken in
// the order of harm per byte saved, and as many are brought to 4 bits together as a share of the
// quality budget allows - found by bisection with the *joint* loss measured, since harms do not
// simply add up. A heavy tensor that alone is too much (a large embedding) is passed over, so that
// the lighter ones behind it get their chance. The rest stays at 8 bits. The gate has the last
// word; each further try aims at a smaller share.
#pragma once

#include "compress/pass.hpp"

namespace spud::compress::int4 {

[[nodiscard]] Result<PassOutput> run_mixed(const PassContext& context,
                                           const std::filesystem::path& out);

// One tensor's answer. `bytes_saved` against 8 bits.
struct Sensitivity {
  std::size_t index = 0;
  tensor::DType type{};  // the better 4-bit type by weighted error
  double mean_kld = 0;
  std::uint64_t bytes_saved = 0;
};

// Least harm per byte first; ties in file order.
std::vector<Sensitivity> by_harm_per_byte(std::vector<Sensitivity> sensitivities);

using Fits = std::function<Result<bool>(std::size_t)>;

// The largest n in [low, high] for which `fits(n)`, by bisection; fits(low) is taken for granted.
[[nodiscard]] Result<std::size_t> largest_fitting(std::size_t low, std::size_t high,
                                                  const Fits& fits);

// How many tensors from the front of `order` fit together. A tensor that is one too many and holds
// an eighth or more of what is still to be saved moves to the back, and the search goes on behind
// it. `fits(n)` asks about the first n of `order` as it stands.
[[nodiscard]] Result<std::size_t> fit_most(std::vector<Sensitivity>& order, const Fits& fits);

}  // namespace spud::compress::int4
