// SPDX-License-Identifier: Apache-2.0
// The JSON schema (draft 2020-12) of an options struct, for editors and CI.
#pragma once

#include <string>
#include <string_view>

#include "config/field_visitor.hpp"

namespace spud::config {

// Pretty-printed JSON text.
std::string json_schema(std::string_view title, const VisitFunction& visit);

template <HasFields T>
std::string json_schema(std::string_view title) {
  T options{};
  return json_schema(title, [&](FieldVisitor& v) { options.visit_fields(v); });
}

}  // namespace spud::config
