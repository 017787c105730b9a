// SPDX-License-Identifier: Apache-2.0
// Recipes (and with them every YAML file we read): the parser must answer with a recipe or one
// sentence. A recipe that was accepted must print and read back the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "compress/pass.hpp"
#include "compress/recipe.hpp"
#include "config/config.hpp"
#include "fuzz_target.hpp"

std::vector<std::string> spud::fuzz::fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const spud::compress::BuiltinRecipe& recipe : spud::compress::builtin_recipes()) {
    seeds.emplace_back(recipe.yaml);
  }
  seeds.emplace_back("name: x\nsteps:\n- pass: int8\n  margins: {ppl_ratio_max: 1.5}\n");
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto passes = spud::compress::builtin_passes();
  const auto recipe = spud::compress::parse_recipe(text, "fuzz.yaml", passes);
  if (!recipe) {
    SPUD_CHECK(!recipe.error().message().empty());
    return 0;
  }
  const std::string printed = spud::config::to_yaml(*recipe);
  const auto again = spud::compress::parse_recipe(printed, "printed.yaml", passes);
  SPUD_CHECK(again.has_value());
  SPUD_CHECK(spud::config::to_yaml(*again) == printed);
  return 0;
}
