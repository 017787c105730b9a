// SPDX-License-Identifier: Apache-2.0
#include "spud/isa_option.hpp"

namespace spud::app {

Result<kernels::Isa> isa_of(const GlobalOptions& globals) {
  if (globals.isa.empty()) return kernels::Isa::kAvx512;
  for (const auto isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (globals.isa == kernels::to_string(isa)) return isa;
  }
  return fail(ErrorCode::kInvalidArgument,
              "instruction set '{}' is unknown; use scalar, avx2 or avx512", globals.isa);
}

}  // namespace spud::app
