// SPDX-License-Identifier: Apache-2.0
#include "spud/config_kinds.hpp"

namespace spud::app {

// One line per kind: {"recipe", "...", &schema_of<compress::Recipe>,
// &defaults_of<compress::Recipe>}.
std::span<const ConfigKind> builtin_config_kinds() { return {}; }

}  // namespace spud::app
