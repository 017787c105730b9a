// SPDX-License-Identifier: Apache-2.0
#include "compress/recipe.hpp"

#include <filesystem>
#include <vector>

#include "base/registry.hpp"
#include "compress/pass.hpp"
#include "config/config.hpp"

namespace spud::compress {
namespace {

constexpr double kSmallest = 1e-9;

Result<void> check_step(StepOptions& step, std::size_t number, std::span<const Pass> passes) {
  const auto where = [&](Error error) {
    return fail_within(fmt::format("step {}", number), std::move(error));
  };
  auto pass = find_in_registry(passes, "pass", step.pass);
  if (!pass) return where(std::move(pass).error());
  if (step.alternatives.empty()) {
    for (const Alternative& known : (*pass)->alternatives) {
      step.alternatives.emplace_back(known.name);
    }
  }
  for (const std::string& name : step.alternatives) {
    auto found = find_in_registry((*pass)->alternatives,
                                  fmt::format("alternative of pass '{}'", step.pass), name);
    if (!found) return where(std::move(found).error());
  }
  if (auto budget = budget_of(step); !budget) return where(std::move(budget).error());
  return {};
}

bool looks_like_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") ||
         name.ends_with(".yml");
}

void set_if_given(std::optional<double>& limit, double value) {
  if (value > 0) limit = value;
}

}  // namespace

void MarginOptions::visit_fields(config::FieldVisitor& v) {
  v.field({.name = "budget",
           .help = "Named budget the other margins start from; empty: the pass's own.",
           .choices = quality::budget_names()},
          budget);
  v.field({.name = "perplexity_ratio",
           .help = "Largest upper bound of perplexity over the original's; 0: the budget's.",
           .min = 0,
           .max = 100},
          perplexity_ratio);
  v.field({.name = "mean_kld",
           .help = "Largest upper bound of the mean KL divergence, nats; 0: the budget's.",
           .min = 0,
           .max = 100},
          mean_kld);
  v.field(
      {.name = "top1_agreement",
       .help = "Smallest lower bound of the share of equal most likely tokens; 0: the budget's.",
       .min = 0,
       .max = 1},
      top1_agreement);
  v.field({.name = "p99_kld",
           .help = "Largest upper bound of the 99th percentile of the divergence; 0: the budget's.",
           .min = 0,
           .max = 1000},
          p99_kld);
  v.field({.name = "choice_drop",
           .help = "Largest loss of multiple-choice accuracy, 0.02 = 2 points; 0: the budget's.",
           .min = 0,
           .max = 1},
          choice_drop);
  v.field({.name = "step_perplexity_ratio",
           .help = "Largest upper bound of perplexity over the last accepted's; 0: the budget's.",
           .min = 0,
           .max = 100},
          step_perplexity_ratio);
}

void RuleOptions::visit_fields(config::FieldVisitor& v) {
  v.field({.name = "max_size_ratio",
           .help = "Written file's bytes over the last accepted's, at most.",
           .min = kSmallest,
           .max = 10},
          max_size_ratio);
  v.field({.name = "min_prefill_ratio",
           .help = "Prompt speed over the last accepted's: lower bound, at least.",
           .min = 0,
           .max = 100},
          min_prefill_ratio);
  v.field({.name = "min_decode_ratio",
           .help = "Generation speed over the last accepted's: lower bound, at least.",
           .min = 0,
           .max = 100},
          min_decode_ratio);
}

void StepOptions::visit_fields(config::FieldVisitor& v) {
  v.field({.name = "pass", .help = "Name of the pass.", .required = true}, pass);
  v.field({.name = "alternatives",
           .help = "Ways to do it, in the order they are tried; empty: all of the pass."},
          alternatives);
  v.field({.name = "margin", .help = "The most quality the result may lose."}, margin);
  v.field({.name = "rules", .help = "What the result must gain."}, rules);
}

void MeasureOptions::visit_fields(config::FieldVisitor& v) {
  v.field(
      {.name = "data",
       .help = "Text to measure on: builtin, self (sampled from the original), or a file (plain "
               "text or JSONL)."},
      data);
  v.field({.name = "sequence_tokens",
           .help = "Longest stretch scored as a whole, tokens.",
           .min = 32,
           .max = 4096},
          sequence_tokens);
  v.field({.name = "validation_tokens",
           .help = "Scored tokens the gates decide on, at most.",
           .min = 64,
           .max = 1e7},
          validation_tokens);
  v.field({.name = "holdout_tokens",
           .help = "Scored tokens of the final check, at most.",
           .min = 64,
           .max = 1e7},
          holdout_tokens);
  v.field({.name = "calibration_tokens",
           .help = "Tokens that passes may learn from, at most.",
           .min = 64,
           .max = 1e7},
          calibration_tokens);
  v.field({.name = "sensitivity_tokens",
           .help = "Tokens per tensor when its sensitivity is measured.",
           .min = 32,
           .max = 1e6},
          sensitivity_tokens);
  v.field({.name = "questions",
           .help = "Multiple-choice questions a candidate answers, at most; 0: none.",
           .min = 0,
           .max = 1e6},
          questions);
}

void SpeedOptions::visit_fields(config::FieldVisitor& v) {
  v.field({.name = "enabled", .help = "Measure speed and apply the speed rules."}, enabled);
  v.field({.name = "pairs", .help = "Interleaved runs of both models.", .min = 3, .max = 1000},
          pairs);
  v.field({.name = "max_pairs",
           .help = "Runs at most, when the first ones leave the rule undecided.",
           .min = 3,
           .max = 1000},
          max_pairs);
  v.field({.name = "prefill_tokens", .help = "Prompt length.", .min = 16, .max = 4096},
          prefill_tokens);
  v.field({.name = "decode_tokens", .help = "Generated tokens per run.", .min = 2, .max = 4096},
          decode_tokens);
}

void Recipe::visit_fields(config::FieldVisitor& v) {
  v.field({.name = "name", .help = "Short name, for reports.", .required = true}, name);
  v.field({.name = "summary", .help = "One sentence: what for."}, summary);
  v.field({.name = "steps", .help = "What to do, in order.", .required = true}, steps);
  v.field({.name = "measure", .help = "What quality is measured on."}, measure);
  v.field({.name = "speed", .help = "How speed is measured."}, speed);
}

Result<Recipe> parse_recipe(std::string_view yaml, std::string_view source,
                            std::span<const Pass> passes) {
  SPUD_TRY(Recipe recipe, config::parse_yaml<Recipe>(yaml, source));
  if (recipe.steps.empty()) {
    return fail(ErrorCode::kInvalidArgument, "{}: the recipe has no steps", source);
  }
  for (std::size_t i = 0; i < recipe.steps.size(); ++i) {
    if (auto good = check_step(recipe.steps[i], i + 1, passes); !good) {
      return fail_within(source, std::move(good).error());
    }
  }
  return recipe;
}

Result<Recipe> load_recipe(std::string_view name_or_path, std::span<const Pass> passes) {
  if (looks_like_path(name_or_path)) {
    SPUD_TRY(const std::string text, config::read_config_file(std::filesystem::path(name_or_path)));
    return parse_recipe(text, name_or_path, passes);
  }
  SPUD_TRY(const BuiltinRecipe* found, find_in_registry(builtin_recipes(), "recipe", name_or_path));
  return parse_recipe(found->yaml, fmt::format("built-in recipe '{}'", found->name), passes);
}

Result<quality::Budget> budget_of(const StepOptions& step) {
  const MarginOptions& margin = step.margin;
  SPUD_TRY(quality::Budget budget,
           quality::find_budget(margin.budget.empty() ? step.pass : margin.budget));
  set_if_given(budget.ppl_ratio_max, margin.perplexity_ratio);
  set_if_given(budget.kld_mean_max, margin.mean_kld);
  set_if_given(budget.top1_min, margin.top1_agreement);
  set_if_given(budget.kld_p99_max, margin.p99_kld);
  set_if_given(budget.mcq_drop_max, margin.choice_drop);
  set_if_given(budget.step_ppl_ratio_max, margin.step_perplexity_ratio);
  return budget;
}

}  // namespace spud::compress
