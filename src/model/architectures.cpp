// SPDX-License-Identifier: Apache-2.0
#include "base/registry.hpp"
#include "model/arch/arch.hpp"
#include "model/architecture.hpp"

namespace spud::model {
namespace {

constexpr auto kArchitectures = make_registry<Architecture>({
    {.name = "llama",
     .summary = "Llama 2/3, SmolLM2, TinyLlama, Mistral shapes",
     .maturity = Maturity::kStable,
     .describe = &arch::describe_llama},
    {.name = "qwen2",
     .summary = "Qwen 2 and 2.5 (query, key and value biases)",
     .maturity = Maturity::kAlpha,
     .describe = &arch::describe_qwen2},
    {.name = "qwen3",
     .summary = "Qwen 3, dense (query and key norms)",
     .maturity = Maturity::kAlpha,
     .describe = &arch::describe_qwen3},
    {.name = "gemma3",
     .summary = "Gemma 3 text models (sliding windows, sandwich norms)",
     .maturity = Maturity::kStable,
     .describe = &arch::describe_gemma3},
});

}  // namespace

std::span<const Architecture> builtin_architectures() noexcept { return kArchitectures; }

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) names.push_back(architecture.name);
  return names;
}

}  // namespace spud::model
