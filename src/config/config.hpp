// SPDX-License-Identifier: Apache-2.0
// YAML to an options struct with a field list, and back. Unknown keys, wrong types and values out
// of range are errors that name the line, the key and what was expected. Anchors and aliases are
// refused (they let a small file become a huge tree); files are limited to kMaxBytes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/field_visitor.hpp"

namespace spud::config {

inline constexpr std::size_t kMaxBytes = 1u << 20;
inline constexpr int kMaxDepth = 32;

// Fills what the text mentions and leaves the rest. `source` names the text in messages.
[[nodiscard]] Result<void> parse_yaml_into(std::string_view text, std::string_view source,
                                           const VisitFunction& visit);
std::string print_yaml(const VisitFunction& visit);

template <HasFields T>
[[nodiscard]] Result<T> parse_yaml(std::string_view text, std::string_view source) {
  T options{};
  SPUD_TRY(parse_yaml_into(text, source, [&](FieldVisitor& v) { options.visit_fields(v); }));
  return options;
}

template <HasFields T>
[[nodiscard]] Result<void> parse_yaml_into(std::string_view text, std::string_view source,
                                           T& options) {
  return parse_yaml_into(text, source, [&](FieldVisitor& v) { options.visit_fields(v); });
}

// The whole file as text; an error when it is missing, a folder, or longer than kMaxBytes.
[[nodiscard]] Result<std::string> read_config_file(const std::filesystem::path& path);

template <HasFields T>
std::string to_yaml(T options) {
  return print_yaml([&](FieldVisitor& v) { options.visit_fields(v); });
}

}  // namespace spud::config
