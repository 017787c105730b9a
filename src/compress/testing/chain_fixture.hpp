// SPDX-License-Identifier: Apache-2.0
// For tests of the chain: a tiny random model in 16 bit, a folder that is removed, a recipe whose
// first step (int8) is good and whose second is up to the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "compress/chain.hpp"
#include "compress/engine_measurer.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::compress::testing {

// The random model predicts next to nothing, so ratios and divergences say little; the margins are
// wide and only gross faults reach them.
inline constexpr std::string_view kWideMargin =
    "{budget: int4, perplexity_ratio: 5, mean_kld: 5, top1_agreement: 0.01, "
    "step_perplexity_ratio: 5}";

inline std::string recipe_yaml(std::string_view second_pass, std::string_view extra = "") {
  return fmt::format(
      "name: test\n"
      "steps:\n"
      "  - pass: int8\n"
      "    margin: {0}\n"
      "  - pass: {1}\n"
      "    margin: {0}\n"
      "    rules: {{max_size_ratio: 0.98}}\n"
      "measure: {{sequence_tokens: 64, validation_tokens: 400, holdout_tokens: 200,\n"
      "  calibration_tokens: 200, sensitivity_tokens: 60, questions: 20}}\n"
      "{2}",
      kWideMargin, second_pass, extra.empty() ? "speed: {enabled: false}\n" : extra);
}

class ChainTest : public ::testing::Test {
 public:
  ~ChainTest() override { std::filesystem::remove_all(folder_); }

 protected:
  ChainTest() {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("spud-chain-{}-{}", ::getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  ChainOptions options(std::string_view yaml, std::span<const Pass> passes) const {
    auto recipe = parse_recipe(yaml, "test recipe", passes);
    EXPECT_TRUE(recipe) << (recipe ? "" : recipe.error().message());
    return {.source = model_.path(),
            .folder = folder_ / "out",
            .recipe = recipe ? *std::move(recipe) : Recipe{},
            .passes = passes,
            .spud_version = "test",
            .make_measurer = make_engine_measurer({.logits_limit_bytes = 1 << 24})};
  }
  // Cancels the chain when its first candidate was decided on; `cancelled` must outlive it.
  static void stop_after_first_decision(ChainOptions& chain, bool& cancelled) {
    chain.cancelled = [&cancelled] { return cancelled; };
    chain.on_event = [&cancelled](const ChainEvent& event) {
      if (event.kind == ChainEvent::Kind::kDecided) cancelled = true;
    };
  }
  Result<Journal> run(const ChainOptions& chain) { return run_chain(chain, pool_, clock_); }

  std::filesystem::path artifact() const { return folder_ / "out" / "model.gguf"; }

  model::testing::TinyModelFile model_{
      {.weights = tensor::DType::kF16, .embedding = tensor::DType::kF16}};
  std::filesystem::path folder_;
  concurrency::ThreadPool pool_{2};
  concurrency::RealClock clock_;
};

// The table of passes with one more called "broken".
inline std::vector<Pass> with_pass(const Pass& extra) {
  std::vector<Pass> passes(builtin_passes().begin(), builtin_passes().end());
  passes.push_back(extra);
  return passes;
}

inline constexpr Alternative kOnlyAlternative[] = {{.name = "only", .summary = "The only one."}};
inline std::string never_skip(const formats::ModelFile&) { return {}; }

}  // namespace spud::compress::testing
