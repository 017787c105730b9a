// SPDX-License-Identifier: Apache-2.0
// A recipe: the ordered steps of a chain, what each step may cost in quality, and what it must
// gain. One field list per struct gives the YAML reader, the JSON schema and docs/recipes.md.
// Recipes say what is asked, never how a gate decides: that is quality/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/field_visitor.hpp"
#include "quality/gate.hpp"

namespace spud::compress {

struct Pass;

// The most a candidate may lose. A field left at 0 is taken from the named budget of quality/.
struct MarginOptions {
  std::string budget;  // "fp16", "int8", "int4"; empty: the one called like the pass
  double perplexity_ratio = 0;
  double mean_kld = 0;  // nats per token
  double top1_agreement = 0;
  double p99_kld = 0;
  double choice_drop = 0;            // of multiple-choice accuracy, 0.02 = 2 points
  double step_perplexity_ratio = 0;  // against the last accepted
  void visit_fields(config::FieldVisitor& visitor);
};

// What a candidate must gain over the last accepted artifact, beside its quality.
struct RuleOptions {
  double max_size_ratio = 0.98;
  double min_prefill_ratio = 0.9;
  double min_decode_ratio = 0.9;
  void visit_fields(config::FieldVisitor& visitor);
};

struct StepOptions {
  std::string pass;
  std::vector<std::string> alternatives;  // empty: all of the pass, in its order
  MarginOptions margin;
  RuleOptions rules;
  void visit_fields(config::FieldVisitor& visitor);
};

struct MeasureOptions {
  std::string data = "builtin";
  std::int64_t sequence_tokens = 256;
  std::int64_t validation_tokens = 12'000;
  std::int64_t holdout_tokens = 6'000;
  std::int64_t calibration_tokens = 3'000;
  std::int64_t sensitivity_tokens = 128;
  std::int64_t questions = 40;
  void visit_fields(config::FieldVisitor& visitor);
};

struct SpeedOptions {
  bool enabled = true;
  std::int64_t pairs = 5;
  std::int64_t max_pairs = 15;
  std::int64_t prefill_tokens = 256;
  std::int64_t decode_tokens = 12;
  void visit_fields(config::FieldVisitor& visitor);
};

struct Recipe {
  std::string name;
  std::string summary;
  std::vector<StepOptions> steps;
  MeasureOptions measure;
  SpeedOptions speed;
  void visit_fields(config::FieldVisitor& visitor);
};

// `source` names the text in messages. Every pass, alternative and budget must exist.
[[nodiscard]] Result<Recipe> parse_recipe(std::string_view yaml, std::string_view source,
                                          std::span<const Pass> passes);
// A built-in recipe by name, or a file when the argument looks like a path.
[[nodiscard]] Result<Recipe> load_recipe(std::string_view name_or_path,
                                         std::span<const Pass> passes);
// The step's budget: the named one with the step's own margins on top.
[[nodiscard]] Result<quality::Budget> budget_of(const StepOptions& step);

struct BuiltinRecipe {
  std::string_view name;
  std::string_view yaml;
};
std::span<const BuiltinRecipe> builtin_recipes();

}  // namespace spud::compress
