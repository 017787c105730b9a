// SPDX-License-Identifier: Apache-2.0
// The types of keys and values by name, for options.
#pragma once

#include <span>
#include <string_view>

#include "base/result.hpp"
#include "kernels/kv_block.hpp"

namespace spud::kvcache {

std::span<const std::string_view> kv_type_names() noexcept;

// kInvalidArgument names the known ones.
[[nodiscard]] Result<kernels::KvType> parse_kv_type(std::string_view name);

}  // namespace spud::kvcache
