// SPDX-License-Identifier: Apache-2.0
// 32-bit weights to 16 bit. F16 keeps 11 bits of precision but ends at 65504; a tensor with a
// larger value becomes BF16 (8 bits, range of a float) as a whole. Norms and biases stay F32: they
// are small, and errors in them touch everything. Also makes the 16-bit original of a model that
// arrives already quantised.
#pragma once

#include "compress/pass.hpp"

namespace spud::compress::fp16 {

inline constexpr Alternative kAlternatives[] = {
    {.name = "f16", .summary = "F16; BF16 for a tensor that would overflow."},
};

std::string skip_reason(const formats::ModelFile& accepted);
[[nodiscard]] Result<PassOutput> run(const PassContext& context, const std::filesystem::path& out);

// F16 or BF16 for each weight matrix that is not 16-bit yet. Reads all values once.
[[nodiscard]] Result<TensorPlan> sixteen_bit_plan(const formats::ModelFile& file,
                                                  concurrency::ThreadPool& pool);

}  // namespace spud::compress::fp16
