// SPDX-License-Identifier: Apache-2.0
// Reads one scalar from its text and checks it against its FieldInfo. Shared by the YAML reader
// and by flags and environment, so that all say the same about the same mistake.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/field_visitor.hpp"

namespace spud::config {

[[nodiscard]] Result<bool> parse_bool(const FieldInfo& info, std::string_view text);
// Accepts digits with an optional suffix k, M, G (powers of 1000) or Ki, Mi, Gi (of 1024).
[[nodiscard]] Result<std::int64_t> parse_integer(const FieldInfo& info, std::string_view text);
[[nodiscard]] Result<double> parse_number(const FieldInfo& info, std::string_view text);
[[nodiscard]] Result<std::string> parse_text(const FieldInfo& info, std::string_view text);

}  // namespace spud::config
