// SPDX-License-Identifier: Apache-2.0
// The kinds of YAML file that spud reads, each made from one field list.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace spud::app {

struct ConfigKind {
  std::string_view name;
  std::string_view summary;
  std::string (*schema)() = nullptr;
  std::string (*defaults)() = nullptr;
};

std::span<const ConfigKind> builtin_config_kinds();

}  // namespace spud::app
