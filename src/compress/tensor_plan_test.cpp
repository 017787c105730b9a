// SPDX-License-Identifier: Apache-2.0
#include "compress/tensor_plan.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>

#include "compress/passes/fp16.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::compress {
namespace {

using tensor::DType;

// Two matrices of 32-bit floats, one of them with a value beyond F16, and a norm.
std::filesystem::path write_floats() {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("spud-plan-{}.gguf", ::getpid());
  const auto matrix = [](std::string name, float first) {
    return formats::WriteTensor{.info = {.name = std::move(name),
                                         .dtype = DType::kF32,
                                         .shape = {32, 2},
                                         .size_bytes = 256},
                                .fill = [first](std::span<std::byte> out) -> Result<void> {
                                  std::vector<float> values(64, 0.5F);
                                  values[40] = first;
                                  std::memcpy(out.data(), values.data(), out.size());
                                  return {};
                                }};
  };
  formats::Metadata metadata;
  metadata.set("general.architecture", {std::string("llama")});
  std::vector<formats::WriteTensor> tensors{matrix("a.weight", 2.0F), matrix("b.weight", 1e6F),
                                            matrix("a_norm.weight", 1.0F)};
  EXPECT_TRUE(formats::write_gguf(path, metadata, tensors));
  return path;
}

TEST(SixteenBitPlan, TakesBf16WhereF16WouldOverflowAndLeavesNorms) {
  const auto path = write_floats();
  concurrency::ThreadPool pool(2);
  {
    const auto file = formats::ModelFile::open(path);
    ASSERT_TRUE(file) << file.error().message();
    const auto plan = fp16::sixteen_bit_plan(**file, pool);
    ASSERT_TRUE(plan);
    const auto types = planned_types(**file, *plan);
    EXPECT_EQ(types.at("a.weight"), DType::kF16);
    EXPECT_EQ(types.at("b.weight"), DType::kBF16);
    EXPECT_EQ(types.at("a_norm.weight"), DType::kF32);
  }
  std::filesystem::remove(path);
}

TEST(WritePlan, WritesTheSameBytesForAnyNumberOfThreads) {
  const model::testing::TinyModelFile model{{.weights = DType::kF16, .embedding = DType::kF16}};
  const auto file = formats::ModelFile::open(model.path());
  ASSERT_TRUE(file);
  std::string digests[2];
  for (const int threads : {1, 3}) {
    concurrency::ThreadPool pool(threads);
    const auto out = model.path().parent_path() / fmt::format("out-{}.gguf", threads);
    ASSERT_TRUE(write_plan(**file, uniform_plan(**file, {.type = DType::kQ4_0}), {}, pool, out));
    const auto written = formats::ModelFile::open(out);
    ASSERT_TRUE(written);
    digests[threads == 1 ? 0 : 1] = formats::tensor_digest(**written);
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(WritePlan, NamesATensorThatCalibrationNeverSaw) {
  const model::testing::TinyModelFile model{{.weights = DType::kF16}};
  const auto file = formats::ModelFile::open(model.path());
  ASSERT_TRUE(file);
  concurrency::ThreadPool pool(1);
  const auto written =
      write_plan(**file, uniform_plan(**file, {.type = DType::kQ4_0, .use_importance = true}), {},
                 pool, model.path().parent_path() / "out.gguf");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message(), ::testing::HasSubstr("never seen in calibration"));
}

}  // namespace
}  // namespace spud::compress
