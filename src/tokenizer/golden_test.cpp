// SPDX-License-Identifier: Apache-2.0
// Ids of the two reference models against files made with the reference implementation. Skipped
// where the files or the models are absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "formats/model_file.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

fs::path golden_dir() {
  if (const char* shared = std::getenv("SPUD_SHARED")) return fs::path(shared) / "golden";
  return fs::path(SPUD_SOURCE_DIR).parent_path() / "shared" / "golden";
}

fs::path model_path(std::string_view name) {
  if (const char* models = std::getenv("SPUD_MODELS")) return fs::path(models) / name;
  const char* home = std::getenv("HOME");
  return fs::path(home == nullptr ? "." : home) / ".cache" / "spud" / "models" / name;
}

struct GoldenModel {
  std::string_view prefix;
  std::string_view file;
};

void PrintTo(const GoldenModel& model, std::ostream* out) { *out << model.prefix; }

std::string text_of(const json::value& item) { return std::string(item.at("text").as_string()); }

// The short texts went to the reference program as an argument, in which it reads the escapes
// \\n, \\t and \\\\; the ids in the file are those of the text after that.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : ' ';
    if (next == 'n' || next == 't' || next == '\\') {
      out.push_back(next == 'n' ? '\n' : next == 't' ? '\t' : '\\');
      ++i;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

class Golden : public testing::TestWithParam<GoldenModel> {
 protected:
  void SetUp() override {
    const fs::path model = model_path(GetParam().file);
    if (!fs::exists(model)) GTEST_SKIP() << model << " is absent (tools/fetch-model gets it)";
    if (!fs::exists(golden_dir())) GTEST_SKIP() << golden_dir() << " is absent";
    auto file = formats::ModelFile::open(model);
    ASSERT_TRUE(file) << file.error().message();
    const auto begin = std::chrono::steady_clock::now();
    auto made = Tokenizer::create((*file)->metadata());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(made) << made.error().message();
    RecordProperty("create_ms", std::to_string(took.count()));
    tokenizer_ = *made;
  }

  json::value load(std::string_view what) const {
    const fs::path path = golden_dir() / fmt::format("{}_{}.json", GetParam().prefix, what);
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return json::parse(text.str());
  }

  void check(std::string text, const json::object& item, std::string_view key,
             bool parse_special) const {
    const auto expected = json::value_to<std::vector<TokenId>>(item.at(key));
    const auto ids = tokenizer_->encode(text, {.parse_special = parse_special});
    ASSERT_TRUE(ids) << ids.error().message();
    EXPECT_EQ(*ids, expected) << text.substr(0, 200);
    EXPECT_EQ(tokenizer_->decode(*ids, /*render_special=*/true), text);
    std::string streamed;
    StreamDecoder decoder(*tokenizer_, /*render_special=*/true);
    for (const TokenId id : *ids) streamed += decoder.push(id);
    streamed += decoder.finish();
    EXPECT_EQ(streamed, text);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_P(Golden, LongTextsGiveTheReferenceIds) {
  for (const std::string_view what : {"wikitext", "gsm8k"}) {
    const json::value item = load(what);
    check(text_of(item), item.as_object(), "ids", true);
  }
}

TEST_P(Golden, HardTextsGiveTheReferenceIdsWithAndWithoutSpecialTokens) {
  const json::value items = load("unicode");
  ASSERT_GT(items.as_array().size(), 100u);
  for (const json::value& item : items.as_array()) {
    const std::string text = unescape(text_of(item));
    check(text, item.as_object(), "ids", true);
    check(text, item.as_object(), "ids_no_special", false);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values(GoldenModel{"smollm2", "smollm2-135m-instruct-q4_1.gguf"},
                                         GoldenModel{"gemma3", "gemma-3-270m-q4_k_m.gguf"}),
                         [](const auto& entry) { return std::string(entry.param.prefix); });

}  // namespace
}  // namespace spud::tokenizer
