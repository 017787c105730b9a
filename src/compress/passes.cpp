// SPDX-License-Identifier: Apache-2.0
// Every pass a recipe can name.
#include "base/registry.hpp"
#include "compress/pass.hpp"
#include "compress/passes/fp16.hpp"
#include "compress/passes/int4.hpp"
#include "compress/passes/int8.hpp"

namespace spud::compress {
namespace {

constexpr auto kPasses = make_registry<Pass>({
    {.name = "fp16",
     .summary = "32-bit weights to 16 bit: F16, or BF16 for a tensor whose values F16 cannot hold.",
     .alternatives = fp16::kAlternatives,
     .skip_reason = &fp16::skip_reason,
     .run = &fp16::run},
    {.name = "int8",
     .summary = "8-bit blocks (Q8_0) for every weight matrix, a tied embedding included.",
     .alternatives = int8::kAlternatives,
     .skip_reason = &int8::skip_reason,
     .run = &int8::run},
    {.name = "int4",
     .summary = "4-bit blocks, from plain rounding to a mix with 8 bits by measured sensitivity.",
     .alternatives = int4::kAlternatives,
     .skip_reason = &int4::skip_reason,
     .run = &int4::run},
});

}  // namespace

Result<PassOutput> run_plan(const PassContext& context, const TensorPlan& plan,
                            const std::filesystem::path& out) {
  const Importance none;
  const Importance* importance = &none;
  for (const TensorChoice& choice : plan.choices) {
    if (choice.use_importance && importance == &none) {
      SPUD_TRY(importance, context.calibration.importance());
    }
  }
  SPUD_TRY(write_plan(context.original, plan, *importance, context.pool, out));
  return PassOutput{.expected_types = planned_types(context.original, plan), .note = {}};
}

std::span<const Pass> builtin_passes() { return kPasses; }

}  // namespace spud::compress
