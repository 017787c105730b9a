// SPDX-License-Identifier: Apache-2.0
// Which tensors can live with 4 bits? Every weight matrix alone is brought to 4 bits and the rise
// in KL divergence against the original is measured on calibration text. Tensors are then taken in
// the order of harm per byte saved, and as many are brought to 4 bits together as a share of the
// quality budget allows - found by bisection with the *joint* loss measured, since harms do not
// simply add up. The rest stays at 8 bits. The gate has the last word; each further try aims at a
// smaller share.
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

// The largest n in [0, count] for which `fits(n)`, by bisection; fits(0) is taken for granted.
[[nodiscard]] Result<std::size_t> largest_fitting(
    std::size_t count, const std::function<Result<bool>(std::size_t)>& fits);

}  // namespace spud::compress::int4
