// SPDX-License-Identifier: Apache-2.0
// Q8_0 for every weight matrix: blocks of 32 values with one F16 scale, 8.5 bits a value. A tied
// embedding is included: left out, it would be most of a small model's file.
#pragma once

#include "compress/pass.hpp"

namespace spud::compress::int8 {

inline constexpr Alternative kAlternatives[] = {
    {.name = "q8_0", .summary = "Round to nearest, scale from the largest value of each block."},
};

std::string skip_reason(const formats::ModelFile& accepted);
[[nodiscard]] Result<PassOutput> run(const PassContext& context, const std::filesystem::path& out);

}  // namespace spud::compress::int8
