// SPDX-License-Identifier: Apache-2.0
// Four-bit blocks of 32 values, 4.5 bits a value, by four methods from cheap to careful. Q4_1 is
// not among them: a model that arrives as Q4_1 would come back without any loss, which proves
// nothing.
#pragma once

#include "compress/pass.hpp"

namespace spud::compress::int4 {

inline constexpr Alternative kAlternatives[] = {
    {.name = "rtn", .summary = "Q4_0, rounded to nearest; embedding and output stay Q8_0."},
    {.name = "q4_0_search",
     .summary = "Q4_0 with scales that minimise the error weighted by calibration activations."},
    {.name = "iq4_nl_search",
     .summary = "IQ4_NL (a non-uniform grid) with the same weighted search of scales."},
    {.name = "mixed",
     .summary = "4 or 8 bits per tensor by measured sensitivity, the embedding included; each "
                "further try is safer.",
     .attempts = 3},
};

std::string skip_reason(const formats::ModelFile& accepted);
[[nodiscard]] Result<PassOutput> run(const PassContext& context, const std::filesystem::path& out);

}  // namespace spud::compress::int4
