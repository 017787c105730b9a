// SPDX-License-Identifier: Apache-2.0
#include "kvcache/kv_type.hpp"

#include <array>

namespace spud::kvcache {

std::span<const std::string_view> kv_type_names() noexcept {
  static constexpr std::array<std::string_view, 2> kNames = {"int8", "f16"};
  return kNames;
}

Result<kernels::KvType> parse_kv_type(std::string_view name) {
  for (const auto type : {kernels::KvType::kInt8, kernels::KvType::kF16}) {
    if (name == kernels::to_string(type)) return type;
  }
  return fail(ErrorCode::kInvalidArgument,
              "keys and values of type '{}' are unknown; use int8 or f16", name);
}

}  // namespace spud::kvcache
