// SPDX-License-Identifier: Apache-2.0
// Scalars from flags and environment over what a file said (twelve-factor): file < environment <
// flags. A nested field's path is joined: {"limits", "body_bytes"} is the flag
// --limits-body-bytes and the variable SPUD_SERVE_LIMITS_BODY_BYTES.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/field_visitor.hpp"

namespace spud::config {

struct FieldDescription {
  std::string path;  // "limits.body_bytes"
  std::string type;  // "boolean", "integer", "number", "string", "list"
  std::string default_value;
  std::string help;
};

// All leaf fields, in order; lists of groups are left out.
std::vector<FieldDescription> describe_fields(const VisitFunction& visit);

// "limits.body_bytes" -> "--limits-body-bytes" and, with prefix "SPUD_SERVE_", the variable.
std::string flag_name(std::string_view path);
std::string environment_name(std::string_view prefix, std::string_view path);

// Sets each leaf for which `lookup(path)` has a text. The error names the field.
[[nodiscard]] Result<void> apply_overrides(
    const VisitFunction& visit,
    const std::function<std::optional<std::string>(std::string_view path)>& lookup);

}  // namespace spud::config
