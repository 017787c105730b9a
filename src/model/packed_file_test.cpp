// SPDX-License-Identifier: Apache-2.0
// Packed weights kept on disk: mapped they are the bytes that packing gives, and a file that is not
// what it should be is never used.
#include "model/packed_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "formats/testing/temp_folder.hpp"
#include "model/model.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::model {
namespace {

namespace fs = std::filesystem;

class PackedFile : public ::testing::Test {
 protected:
  std::shared_ptr<const Model> load(const fs::path& model, const fs::path& folder) {
    auto loaded = Model::load(*formats::ModelFile::open(model), pool_, {.packed_folder = folder});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message();
    return *loaded;
  }

  std::vector<float> logits_of(const Model& model) {
    const std::vector<TokenId> tokens{1, 2, 3, 5, 8};
    auto cache = *kvcache::KvCache::create(model.kv_geometry(), 1);
    kvcache::BlockTable pages;
    EXPECT_TRUE(cache->grow(pages, tokens.size()));
    std::vector<float> logits(testing::kTinyVocabulary);
    const SequenceSlice slice{.tokens = tokens, .pages = &pages, .first_logit = 4};
    const auto workspace = model.make_workspace();
    model.forward(std::span(&slice, 1), *cache, *workspace, pool_, logits);
    return logits;
  }

  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder())) files.push_back(entry.path());
    return files;
  }
  fs::path folder() const { return temporary_.path() / "packed"; }

  formats::TempFolder temporary_;
  testing::TinyModelFile file_;
  concurrency::ThreadPool pool_{2};
};

TEST_F(PackedFile, LaterStartsMapWhatTheFirstOnePacked) {
  const std::vector<float> expected = logits_of(*load(file_.path(), {}));
  EXPECT_EQ(logits_of(*load(file_.path(), folder())), expected);
  ASSERT_EQ(kept().size(), 1U);
  const auto written = fs::last_write_time(kept()[0]);
  EXPECT_EQ(logits_of(*load(file_.path(), folder())), expected);
  EXPECT_EQ(fs::last_write_time(kept()[0]), written);
}

TEST_F(PackedFile, AnotherModelGetsAnotherFile) {
  load(file_.path(), folder());
  const testing::TinyModelFile other({.seed = 2});
  const std::vector<float> expected = logits_of(*load(other.path(), {}));
  EXPECT_EQ(logits_of(*load(other.path(), folder())), expected);
  EXPECT_EQ(kept().size(), 2U);
}

TEST_F(PackedFile, ADamagedFileIsPackedAnew) {
  const std::vector<float> expected = logits_of(*load(file_.path(), folder()));
  const fs::path path = kept()[0];
  const auto size = fs::file_size(path);
  const auto flip = [&](std::uintmax_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  };
  for (const std::uintmax_t at :
       {std::uintmax_t{0}, std::uintmax_t{9}, std::uintmax_t{24}, std::uintmax_t{4096}, size - 1}) {
    flip(at);
    EXPECT_EQ(logits_of(*load(file_.path(), folder())), expected) << "byte " << at;
  }
  fs::resize_file(path, size - 1);
  EXPECT_EQ(logits_of(*load(file_.path(), folder())), expected);
  EXPECT_EQ(fs::file_size(path), size);
}

TEST_F(PackedFile, AFolderThatCannotBeWrittenIsNoReasonNotToServe) {
  const fs::path blocked = temporary_.path() / "file";
  std::ofstream(blocked) << "not a folder";
  EXPECT_EQ(logits_of(*load(file_.path(), blocked)), logits_of(*load(file_.path(), {})));
}

}  // namespace
}  // namespace spud::model
