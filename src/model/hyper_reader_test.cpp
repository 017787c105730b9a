// SPDX-License-Identifier: Apache-2.0
// Metadata that lies: each lie ends in one clear sentence before anything is computed from it.
#include "model/hyper_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/architecture.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Metadata and tensor names without bytes: all that describe() looks at.
class FakeFile final : public formats::ModelFile {
 public:
  explicit FakeFile(formats::Metadata metadata) : metadata_(std::move(metadata)) {
    formats::TensorInfo embedding;
    embedding.name = "token_embd.weight";
    embedding.shape = {64, static_cast<std::uint64_t>(testing::kTinyVocabulary)};
    tensors_.push_back(std::move(embedding));
  }
  std::string_view format() const noexcept override { return "fake"; }
  const formats::Metadata& metadata() const noexcept override { return metadata_; }
  const std::vector<formats::TensorInfo>& tensors() const noexcept override { return tensors_; }
  std::span<const std::byte> tensor_bytes(std::size_t) const noexcept override { return {}; }
  std::uint64_t file_bytes() const noexcept override { return 0; }

 private:
  formats::Metadata metadata_;
  std::vector<formats::TensorInfo> tensors_;
};

Result<DecoderSpec> describe(const std::string& architecture, formats::Metadata metadata) {
  for (const Architecture& entry : builtin_architectures()) {
    if (entry.name == architecture) return entry.describe(FakeFile(std::move(metadata)));
  }
  return fail(ErrorCode::kNotFound, "no such architecture");
}

std::string error_with(std::string_view key, formats::MetadataValue value) {
  formats::Metadata metadata = testing::tiny_metadata();
  metadata.set(key, std::move(value));
  const auto spec = describe("llama", std::move(metadata));
  return spec ? "accepted" : spec.error().message();
}

formats::MetadataValue number(std::uint32_t value) { return {value}; }

TEST(HyperReader, AcceptsAllArchitectures) {
  for (const std::string_view name : architecture_names()) {
    const std::string architecture(name);
    const auto spec =
        describe(architecture, testing::tiny_metadata({.architecture = architecture}));
    ASSERT_TRUE(spec.has_value()) << spec.error().message();
    EXPECT_EQ(spec->hyper.num_layers, 2);
    EXPECT_EQ(spec->layers.size(), 2U);
    EXPECT_FLOAT_EQ(spec->attention_scale, 0.25F);
  }
}

TEST(HyperReader, NamesWhatIsMissing) {
  for (const char* key : {"llama.block_count", "llama.embedding_length",
                          "llama.feed_forward_length", "llama.context_length",
                          "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    formats::Metadata metadata = testing::tiny_metadata();
    ASSERT_TRUE(metadata.erase(key));
    const auto spec = describe("llama", std::move(metadata));
    ASSERT_FALSE(spec.has_value()) << key;
    EXPECT_THAT(spec.error().message(), AllOf(HasSubstr(key), HasSubstr("missing")));
  }
}

TEST(HyperReader, RefusesValuesThatCannotBe) {
  EXPECT_THAT(error_with("llama.block_count", number(0)), HasSubstr("between 1 and"));
  EXPECT_THAT(error_with("llama.block_count", number(1 << 30)), HasSubstr("between 1 and"));
  EXPECT_THAT(error_with("llama.block_count", {std::string("two")}), HasSubstr("whole number"));
  EXPECT_THAT(error_with("llama.block_count", {std::int32_t{-3}}), HasSubstr("-3"));
  EXPECT_THAT(error_with("llama.attention.head_count_kv", number(3)), HasSubstr("evenly"));
  EXPECT_THAT(error_with("llama.attention.head_count", number(0)), HasSubstr("between"));
  EXPECT_THAT(error_with("llama.attention.key_length", number(17)), HasSubstr("17"));
  EXPECT_THAT(error_with("llama.attention.key_length", number(512)), HasSubstr("512"));
  EXPECT_THAT(error_with("llama.attention.value_length", number(32)), HasSubstr("equal"));
  EXPECT_THAT(error_with("llama.embedding_length", number(65)), HasSubstr("multiples of 32"));
  EXPECT_THAT(error_with("llama.attention.layer_norm_rms_epsilon", {0.0F}),
              HasSubstr("more than zero"));
  EXPECT_THAT(error_with("llama.rope.freq_base", {std::nanf("")}), HasSubstr("more than zero"));
  EXPECT_THAT(error_with("llama.rope.freq_base", {-1.0F}), HasSubstr("more than zero"));
  EXPECT_THAT(error_with("llama.rope.dimension_count", number(18)), HasSubstr("at most"));
  EXPECT_THAT(error_with("llama.rope.dimension_count", number(3)), HasSubstr("even"));
}

TEST(HyperReader, SaysWhatItDoesNotSupport) {
  EXPECT_THAT(error_with("llama.rope.scaling.type", {std::string("yarn")}),
              AllOf(HasSubstr("'yarn'"), HasSubstr("not supported")));
  EXPECT_THAT(error_with("llama.expert_count", number(8)), HasSubstr("8 experts"));
  EXPECT_THAT(error_with("llama.attention.head_count_kv",
                         {formats::MetadataArray{std::vector<std::int32_t>{2, 4}}}),
              HasSubstr("differs between layers"));
}

TEST(HyperReader, TakesAnArrayOfEqualValuesAsOne) {
  EXPECT_EQ(error_with("llama.attention.head_count_kv",
                       {formats::MetadataArray{std::vector<std::int32_t>{2, 2}}}),
            "accepted");
}

TEST(HyperReader, LinearRopeScalingDividesPositions) {
  formats::Metadata metadata = testing::tiny_metadata();
  metadata.set("llama.rope.scaling.type", {std::string("linear")});
  metadata.set("llama.rope.scaling.factor", {4.0F});
  const auto spec = describe("llama", std::move(metadata));
  ASSERT_TRUE(spec.has_value());
  EXPECT_DOUBLE_EQ(spec->ropes[0].position_scale, 0.25);
}

TEST(Gemma3, FiveLocalLayersThenAGlobalOne) {
  const auto spec =
      describe("gemma3", testing::tiny_metadata({.architecture = "gemma3", .num_layers = 12}));
  ASSERT_TRUE(spec.has_value());
  for (std::size_t i = 0; i < 12; ++i) {
    const bool global = i == 5 || i == 11;
    EXPECT_EQ(spec->layers[i].window, global ? 0 : 40) << i;
    EXPECT_EQ(spec->layers[i].rope, global ? 0U : 1U) << i;
  }
  EXPECT_FLOAT_EQ(spec->embedding_scale, 8.0F);
  EXPECT_DOUBLE_EQ(spec->ropes[1].base, 10000);
}

}  // namespace
}  // namespace spud::model
