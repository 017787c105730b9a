// SPDX-License-Identifier: Apache-2.0
#include "compress/recipe.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "compress/pass.hpp"
#include "config/config.hpp"
#include "config/overrides.hpp"

namespace spud::compress {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view yaml) {
  const auto recipe = parse_recipe(yaml, "my.yaml", builtin_passes());
  return recipe ? "no error" : recipe.error().message();
}

TEST(Recipe, EveryBuiltInOneIsValid) {
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    const auto recipe = load_recipe(builtin.name, builtin_passes());
    ASSERT_TRUE(recipe) << builtin.name << ": " << recipe.error().message();
    EXPECT_EQ(recipe->name, builtin.name);
    EXPECT_FALSE(recipe->summary.empty());
  }
}

TEST(Recipe, WithoutAlternativesAllOfThePassAreTried) {
  const auto recipe = parse_recipe("name: a\nsteps: [{pass: int4}]", "my.yaml", builtin_passes());
  ASSERT_TRUE(recipe) << recipe.error().message();
  EXPECT_THAT(recipe->steps[0].alternatives,
              ::testing::ElementsAre("rtn", "q4_0_search", "iq4_nl_search", "mixed"));
}

TEST(Recipe, MisspelledNamesGetASuggestion) {
  EXPECT_THAT(error_of("name: a\nsteps: [{pass: imt8}]"), HasSubstr("did you mean 'int8'"));
  EXPECT_THAT(error_of("name: a\nsteps: [{pass: int4, alternatives: [mixd]}]"),
              HasSubstr("did you mean 'mixed'"));
  EXPECT_THAT(error_of("name: a\nstepz: []"), HasSubstr("steps"));
  const auto recipe = load_recipe("chatt", builtin_passes());
  ASSERT_FALSE(recipe);
  EXPECT_THAT(recipe.error().message(), HasSubstr("did you mean 'chat'"));
}

TEST(Recipe, WithoutStepsIsRefused) {
  EXPECT_THAT(error_of("name: a\nsteps: []"), HasSubstr("no steps"));
}

TEST(Recipe, TheReferencePageNamesEveryKeyPassAndAlternative) {
  const auto page = config::read_config_file(std::filesystem::path(SPUD_DOCS) / "recipes.md");
  ASSERT_TRUE(page) << page.error().message();
  Recipe recipe{.steps = {StepOptions{}}};
  std::vector<std::string> words;
  const auto add_fields = [&](auto& options) {
    for (const auto& field :
         config::describe_fields([&](config::FieldVisitor& v) { options.visit_fields(v); })) {
      words.push_back(field.path.substr(field.path.rfind('.') + 1));
    }
  };
  add_fields(recipe);
  add_fields(recipe.steps.front());
  for (const Pass& pass : builtin_passes()) {
    words.emplace_back(pass.name);
    for (const Alternative& alternative : pass.alternatives) words.emplace_back(alternative.name);
  }
  for (const BuiltinRecipe& builtin : builtin_recipes()) words.emplace_back(builtin.name);
  for (const std::string& word : words) EXPECT_THAT(*page, HasSubstr("`" + word + "`")) << word;
}

TEST(BudgetOf, OwnMarginsReplaceThoseOfTheNamedBudget) {
  StepOptions step{.pass = "int8"};
  step.margin.mean_kld = 0.5;
  const auto budget = budget_of(step);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->kld_mean_max, 0.5);
  EXPECT_EQ(budget->ppl_ratio_max, quality::find_budget("int8")->ppl_ratio_max);
}

}  // namespace
}  // namespace spud::compress
