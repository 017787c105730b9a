// SPDX-License-Identifier: Apache-2.0
// Consistency between the fields of a model file that is well-formed field by field: vocabulary
// against embedding rows, heads against widths, special ids against the vocabulary, layers against
// tensors. Independent of the architecture; model/ checks what its graph needs beyond that.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/model_file.hpp"

namespace spud::formats {

// What is wrong, one sentence each, the worst first; empty when nothing is. Looks at metadata and
// tensor shapes only, so it costs no reading of weights.
std::vector<std::string> check_model(const ModelFile& file);

// For loading: the first problem as an error (kDataLoss), with the number of further ones.
[[nodiscard]] Result<void> require_sound_model(const ModelFile& file);

}  // namespace spud::formats
