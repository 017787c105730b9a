// SPDX-License-Identifier: Apache-2.0
// Files that are models, but not quite: loading says which tensor is wrong and how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.hpp"
#include "model/rope.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A model file with some tensors left out, renamed or reshaped.
class EditedFile final : public formats::ModelFile {
 public:
  explicit EditedFile(std::shared_ptr<const formats::ModelFile> file) : file_(std::move(file)) {
    for (std::size_t i = 0; i < file_->tensors().size(); ++i) {
      tensors_.push_back(file_->tensors()[i]);
      sources_.push_back(i);
    }
    metadata_ = file_->metadata();
  }
  formats::TensorInfo& tensor(std::string_view name) {
    for (formats::TensorInfo& info : tensors_) {
      if (info.name == name) return info;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors_.front();
  }
  formats::Metadata& edit_metadata() { return metadata_; }

  std::string_view format() const noexcept override { return file_->format(); }
  const formats::Metadata& metadata() const noexcept override { return metadata_; }
  const std::vector<formats::TensorInfo>& tensors() const noexcept override { return tensors_; }
  std::span<const std::byte> tensor_bytes(std::size_t index) const noexcept override {
    return file_->tensor_bytes(sources_[index]);
  }
  std::uint64_t file_bytes() const noexcept override { return file_->file_bytes(); }

 private:
  std::shared_ptr<const formats::ModelFile> file_;
  std::vector<formats::TensorInfo> tensors_;
  std::vector<std::size_t> sources_;
  formats::Metadata metadata_;
};

std::shared_ptr<EditedFile> tiny(const testing::TinyModelOptions& options = {}) {
  const testing::TinyModelFile file(options);
  return std::make_shared<EditedFile>(*formats::ModelFile::open(file.path()));
}

std::string load_error(std::shared_ptr<const EditedFile> file) {
  concurrency::ThreadPool pool(1);
  const auto model = Model::load(std::move(file), pool);
  return model ? "loaded" : model.error().message();
}

TEST(ModelLoad, UnchangedFileLoads) { EXPECT_EQ(load_error(tiny()), "loaded"); }

TEST(ModelLoad, NamesTheArchitectureItDoesNotKnow) {
  auto file = tiny();
  file->edit_metadata().set("general.architecture", {std::string("lama")});
  EXPECT_THAT(load_error(file), AllOf(HasSubstr("'lama'"), HasSubstr("llama")));
  file->edit_metadata().erase("general.architecture");
  EXPECT_THAT(load_error(file), HasSubstr("general.architecture"));
}

TEST(ModelLoad, NamesTheTensorThatIsMissing) {
  for (const char* name : {"blk.1.ffn_up.weight", "blk.0.attn_norm.weight", "output_norm.weight",
                           "token_embd.weight"}) {
    auto file = tiny();
    file->tensor(name).name = "something_else";
    EXPECT_THAT(load_error(file), AllOf(HasSubstr(name), HasSubstr("missing")));
  }
}

TEST(ModelLoad, NamesBothShapesWhenTheyDiffer) {
  auto file = tiny();
  file->tensor("blk.0.attn_k.weight").shape = {64, 48};
  EXPECT_THAT(load_error(file), AllOf(HasSubstr("blk.0.attn_k.weight"), HasSubstr("[64, 48]"),
                                      HasSubstr("[64, 32]")));
}

TEST(ModelLoad, RefusesATypeThatCannotBeMultiplied) {
  auto file = tiny({.weights = tensor::DType::kF32});
  file->tensor("blk.0.attn_k.weight").dtype = tensor::DType::kI32;
  EXPECT_THAT(load_error(file), AllOf(HasSubstr("blk.0.attn_k.weight"), HasSubstr("I32")));
}

TEST(ModelLoad, RequiredBiasesAreRequired) {
  auto file = tiny({.architecture = "qwen2"});
  file->tensor("blk.1.attn_v.bias").name = "something_else";
  EXPECT_THAT(load_error(file), HasSubstr("blk.1.attn_v.bias"));
}

TEST(ModelLoad, TiedEmbeddingIsStoredOnce) {
  concurrency::ThreadPool pool(1);
  const auto tied = *Model::load(tiny({.tied = true}), pool);
  const auto untied = *Model::load(tiny({.tied = false}), pool);
  // 300 x 64 values of Q8_0 are 20,400 bytes in the file.
  EXPECT_GT(untied->weight_bytes(), tied->weight_bytes() + 20'000);
}

TEST(RopeTable, FrequencyFactorsDivide) {
  const RopeSpec spec{.base = 10000, .dim = 4};
  const float factors[] = {1.0F, 8.0F};
  const RopeTable plain(spec, {});
  const RopeTable scaled(spec, factors);
  float a[4];
  float b[4];
  plain.fill(100, a);
  scaled.fill(800, b);
  EXPECT_FLOAT_EQ(a[2], b[2]);
  EXPECT_FLOAT_EQ(a[3], b[3]);
  plain.fill(0, a);
  EXPECT_FLOAT_EQ(a[0], 1);
  EXPECT_FLOAT_EQ(a[1], 0);
}

}  // namespace
}  // namespace spud::model
