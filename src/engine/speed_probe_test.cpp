// SPDX-License-Identifier: Apache-2.0
#include "engine/speed_probe.hpp"

#include <gtest/gtest.h>

#include "formats/model_file.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::engine {
namespace {

class SpeedProbeTest : public ::testing::Test {
 protected:
  SpeedProbeTest() : pool_(2) {
    const model::testing::TinyModelFile file;
    model_ = *model::Model::load(*formats::ModelFile::open(file.path()), pool_);
  }
  concurrency::ThreadPool pool_;
  concurrency::RealClock clock_;
  std::shared_ptr<const model::Model> model_;
};

TEST_F(SpeedProbeTest, MeasuresRepeatedlyWithinItsLimits) {
  auto probe = SpeedProbe::create(model_, pool_, clock_, 4, 64);
  ASSERT_TRUE(probe.has_value());
  for (int i = 0; i < 3; ++i) {
    for (const SpeedProbe::Run run :
         {(*probe)->prefill(64), (*probe)->decode(4, 32, 32), (*probe)->decode(1, 0, 64)}) {
      EXPECT_GT(run.products.count(), 0);
      EXPECT_GT(run.time, run.products);
    }
  }
}

TEST_F(SpeedProbeTest, RefusesMoreThanTheModelsContext) {
  const auto probe = SpeedProbe::create(model_, pool_, clock_, 1, 513);
  ASSERT_FALSE(probe.has_value());
  EXPECT_EQ(probe.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(SpeedProbe::create(model_, pool_, clock_, 0, 10).has_value());
}

}  // namespace
}  // namespace spud::engine
