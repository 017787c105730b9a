// SPDX-License-Identifier: Apache-2.0
// The real measurer: the models run on our own engine, by the same kernels as they are served with.
// Holds the original in memory, the reference logits of the validation text up to a limit, and one
// candidate at a time.
#pragma once

#include "compress/measurer.hpp"
#include "model/model.hpp"

namespace spud::compress {

struct EngineMeasurerOptions {
  model::LoadOptions load;
  // Of reference logits kept in memory; what does not fit is computed again.
  std::uint64_t logits_limit_bytes = std::uint64_t{2} << 30;
  // Of tensors quantised for the search of the mixed alternative; beyond it they are made again.
  std::uint64_t blocks_limit_bytes = std::uint64_t{1} << 30;
};

// For ChainOptions::make_measurer.
MeasurerFactory make_engine_measurer(EngineMeasurerOptions options);

}  // namespace spud::compress
