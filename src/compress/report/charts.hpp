// SPDX-License-Identifier: Apache-2.0
// The pictures of a report, each an inline SVG.
#pragma once

#include <string>

#include "compress/journal.hpp"
#include "formats/model_file.hpp"

namespace spud::compress::report {

// Every measured candidate: file size to the right, perplexity ratio upwards with its interval, and
// the margin it was held against.
std::string size_quality_chart(const Journal& journal);
// From the original over each accepted step: bytes, and speed as a multiple of the original's.
std::string waterfall_chart(const Journal& journal);
// Layer by kind of tensor, coloured by bits per weight.
std::string bits_map(const formats::ModelFile& artifact);

}  // namespace spud::compress::report
