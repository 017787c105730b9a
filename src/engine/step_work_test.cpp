// SPDX-License-Identifier: Apache-2.0
#include "engine/step_work.hpp"

#include <gtest/gtest.h>

#include "concurrency/thread_pool.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::engine {
namespace {

StepWork work_of(const model::testing::TinyModelOptions& options) {
  const model::testing::TinyModelFile file(options);
  const auto opened = *formats::ModelFile::open(file.path());
  concurrency::ThreadPool pool(1);
  const auto model = *model::Model::load(opened, pool);
  return describe_step_work(*opened, model->hyper_parameters(), model->kv_geometry());
}

TEST(StepWork, CountsTheWeightsOfProductsOnce) {
  const model::testing::TinyModelOptions options;
  const StepWork work = work_of(options);
  const double attention = 64.0 * (64 + 32 + 32 + 64);
  const double body = 2 * (attention + 3.0 * 64 * 96);
  const double head = 64.0 * model::testing::kTinyVocabulary;
  EXPECT_DOUBLE_EQ(work.row_ops, 2 * body);
  EXPECT_DOUBLE_EQ(work.head_ops, 2 * head);
  EXPECT_GT(work.weight_bytes, (body + head) * 34 / 32);           // Q8_0
  EXPECT_LT(work.weight_bytes, (body + head) * 34 / 32 + 4096.0);  // and the norms
}

TEST(StepWork, AnEmbeddingThatIsNotTheHeadIsNotRead) {
  const StepWork tied = work_of({});
  const StepWork untied = work_of({.tied = false});
  EXPECT_DOUBLE_EQ(tied.weight_bytes, untied.weight_bytes);
}

TEST(StepWork, SlidingWindowsBoundWhatLocalLayersRead) {
  const StepWork work = work_of({.architecture = "gemma3", .num_layers = 6});
  EXPECT_EQ(work.windowed_layers, 5);
  const double one = work.kv_bytes_per_position;
  EXPECT_GT(one, 0);
  EXPECT_DOUBLE_EQ(work.kv_bytes(10), 60 * one);
  EXPECT_DOUBLE_EQ(work.kv_bytes(100), (5 * 40 + 100) * one);
}

}  // namespace
}  // namespace spud::engine
