// SPDX-License-Identifier: Apache-2.0
// The named budgets. Where the figures come from: published and own measurements of models below
// half a billion parameters. Eight-bit weights with eight-bit activations cost such a model 0.5 %
// of perplexity, 0.003 nats and 4 % of the most likely tokens; a good four-bit grid 3-5 %, 0.07-0.1
// nats and 15 %. A margin is what a user would not notice, not the best a method can do.
#include "base/suggest.hpp"
#include "quality/gate.hpp"

namespace spud::quality {
namespace {

struct Row {
  std::string_view name;
  double ppl_ratio_max;
  double kld_mean_max;
  double top1_min;
};

constexpr Row kBudgets[] = {
    {"fp16", 1.002, 0.001, 0.985},
    {"int8", 1.01, 0.01, 0.94},
    {"int4", 1.05, 0.10, 0.85},
};
constexpr std::string_view kNames[] = {kBudgets[0].name, kBudgets[1].name, kBudgets[2].name};

}  // namespace

std::span<const std::string_view> budget_names() noexcept { return kNames; }

Result<Budget> find_budget(std::string_view name) {
  for (const Row& row : kBudgets) {
    if (row.name != name) continue;
    Budget budget;
    budget.name = std::string(name);
    budget.ppl_ratio_max = row.ppl_ratio_max;
    budget.kld_mean_max = row.kld_mean_max;
    budget.top1_min = row.top1_min;
    budget.step_ppl_ratio_max = row.ppl_ratio_max;
    return budget;
  }
  return fail(ErrorCode::kNotFound, "no quality budget is named '{}'{}", name,
              suggestion_text(name, kNames));
}

}  // namespace spud::quality
