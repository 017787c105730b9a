// SPDX-License-Identifier: Apache-2.0
// A candidate file taken apart, so that a test can break one thing in it and write it again.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "compress/pass.hpp"

namespace spud::compress::testing {

struct DraftTensor {
  formats::TensorInfo info;
  std::vector<std::byte> bytes;
};

struct Draft {
  formats::Metadata metadata;
  std::vector<DraftTensor> tensors;

  DraftTensor& tensor(std::string_view name);  // aborts when there is none
};

// An honest 4-bit candidate (Q4_0, the embedding Q8_0), then `damage` on the written file. The pass
// claims the honest types whatever the damage was.
[[nodiscard]] Result<PassOutput> run_damaged(const PassContext& context,
                                             const std::filesystem::path& out,
                                             const std::function<void(Draft&)>& damage);
// The same with Q4_1, which has a zero point.
[[nodiscard]] Result<PassOutput> run_damaged_affine(const PassContext& context,
                                                    const std::filesystem::path& out,
                                                    const std::function<void(Draft&)>& damage);

}  // namespace spud::compress::testing
