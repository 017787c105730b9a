// SPDX-License-Identifier: Apache-2.0
// Perplexity of real models against llama-perplexity on the same file (build 11434, one window of
// 512 tokens scored on its second half, one thread).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/scorer.hpp"
#include "quality/measurement.hpp"

namespace spud::quality {
namespace {

std::filesystem::path folder(const char* variable, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::filesystem::path(value) : otherwise;
}

std::filesystem::path models_folder() {
  const char* home = std::getenv("HOME");
  return folder("SPUD_MODELS",
                std::filesystem::path(home != nullptr ? home : "") / ".cache/spud/models");
}

std::filesystem::path text_file() {
  const auto beside = std::filesystem::path(SPUD_SOURCE_DIR).parent_path() / "shared";
  return folder("SPUD_SHARED", beside) / "data/wikitext2_test.txt";
}

struct Golden {
  const char* file;
  double perplexity;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.file; }

class PerplexityOfOneWindow : public ::testing::TestWithParam<Golden> {};

TEST_P(PerplexityOfOneWindow, IsThatOfLlamaCpp) {
  const auto model_path = models_folder() / GetParam().file;
  if (!std::filesystem::exists(model_path)) GTEST_SKIP() << "no " << model_path;
  if (!std::filesystem::exists(text_file())) GTEST_SKIP() << "no " << text_file();
  std::ostringstream text;
  text << std::ifstream(text_file(), std::ios::binary).rdbuf();

  concurrency::ThreadPool pool(2);
  const auto file = formats::ModelFile::open(model_path);
  ASSERT_TRUE(file) << file.error().message();
  const auto tokenizer = tokenizer::Tokenizer::create((*file)->metadata());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  auto model = model::Model::load(*file, pool);
  ASSERT_TRUE(model) << model.error().message();
  const auto scorer = engine::make_scorer(*model, pool);
  ASSERT_TRUE(scorer);
  // Twenty thousand bytes hold the first window whatever the tokenizer.
  const auto set = make_windows(text.str().substr(0, 20000), "wikitext2", **tokenizer,
                                {.window = 512, .max_windows = 1});
  ASSERT_TRUE(set);
  Measurement m;
  ASSERT_TRUE(measure_alone(*set, **scorer, pool, m));
  EXPECT_EQ(m.num_tokens(), 255);
  // Activations are rounded to eight bits in other groups than there: 0.8 % on one window of Gemma,
  // 0.2 % on sixteen (`spud eval --max-windows 16`).
  EXPECT_NEAR(m.perplexity_candidate() / GetParam().perplexity, 1, 0.012);
}

INSTANTIATE_TEST_SUITE_P(Models, PerplexityOfOneWindow,
                         ::testing::Values(Golden{"smollm2-135m-instruct-q4_1.gguf", 10.1184},
                                           Golden{"gemma-3-270m-q4_k_m.gguf", 7.0189}),
                         [](const auto& test) {
                           return std::string(test.param.file).substr(0, 5) == "smoll" ? "SmolLM2"
                                                                                       : "Gemma3";
                         });

}  // namespace
}  // namespace spud::quality
