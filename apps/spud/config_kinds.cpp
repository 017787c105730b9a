// SPDX-License-Identifier: Apache-2.0
#include "spud/config_kinds.hpp"

#include "base/registry.hpp"
#include "compress/recipe.hpp"
#include "config/config.hpp"
#include "config/schema.hpp"
#include "spud/commands/serve_options.hpp"

namespace spud::app {
namespace {

template <typename Options>
std::string schema_of() {
  return config::json_schema<Options>("spud");
}

template <typename Options>
std::string defaults_of() {
  return config::to_yaml(Options{});
}

// One line per kind.
constexpr auto kKinds = make_registry<ConfigKind>({
    {"recipe", "Steps and margins of 'spud shrink'", &schema_of<compress::Recipe>,
     &defaults_of<compress::Recipe>},
    {"serve", "Options of 'spud serve'", &schema_of<ServeOptions>, &defaults_of<ServeOptions>},
});

}  // namespace

std::span<const ConfigKind> builtin_config_kinds() { return kKinds; }

}  // namespace spud::app
