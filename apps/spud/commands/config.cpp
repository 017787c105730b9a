// SPDX-License-Identifier: Apache-2.0
#include "spud/commands/config.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/registry.hpp"
#include "spud/config_kinds.hpp"

namespace spud::app {
namespace {

Result<int> print(const std::string& kind, bool schema) {
  SPUD_TRY(const ConfigKind* const found,
           find_in_registry(builtin_config_kinds(), "configuration", kind));
  std::fputs((schema ? found->schema() : found->defaults()).c_str(), stdout);
  return kExitOk;
}

}  // namespace

CommandAction define_config(CLI::App& sub, const GlobalOptions&) {
  struct Arguments {
    std::string kind;
    bool schema = false;
  };
  auto arguments = std::make_shared<Arguments>();
  sub.require_subcommand(1);
  auto* schema = sub.add_subcommand("schema", "Print the JSON schema");
  schema->add_option("KIND", arguments->kind, "recipe or serve")->required();
  schema->callback([arguments] { arguments->schema = true; });
  auto* show = sub.add_subcommand("show", "Print the defaults as YAML");
  show->add_option("KIND", arguments->kind, "recipe or serve")->required();
  return [arguments] { return print(arguments->kind, arguments->schema); };
}

}  // namespace spud::app
