// SPDX-License-Identifier: Apache-2.0
#include "quality/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "quality/testing.hpp"

namespace spud::quality {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string words(std::size_t first, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("word{} ", first + i);
  return text;
}

class TemporaryFile {
 public:
  TemporaryFile(std::string name, std::string_view content)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("spud_dataset_test_{}_{}", ::getpid(), name)) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(BuiltinDataset, HasWhatThePromiseSays) {
  const auto dataset = Dataset::builtin();
  ASSERT_TRUE(dataset) << dataset.error().message();
  std::size_t bytes = 0;
  std::set<std::string> kinds;
  std::size_t questions = 0;
  for (const Split split : {Split::kCalibration, Split::kValidation, Split::kHoldout}) {
    for (const Document* d : dataset->documents(split)) {
      bytes += d->text.size();
      kinds.insert(d->kind);
    }
    questions += dataset->questions(split).size();
  }
  EXPECT_GE(bytes, 60'000U);
  EXPECT_GE(questions, 120U);
  for (const char* kind : {"prose", "dialogue", "instruction", "code", "arithmetic", "table"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
  EXPECT_GE(dataset->documents(Split::kValidation).size(), 40U);
  EXPECT_NE(dataset->digest(Split::kValidation), dataset->digest(Split::kHoldout));
}

TEST(Dataset, RefusesSplitsThatShareThirteenWords) {
  std::vector<Document> documents{
      {.id = "a", .split = Split::kCalibration, .text = words(0, 40)},
      {.id = "b", .split = Split::kValidation, .text = "Other start. " + words(20, 13)}};
  const auto refused = Dataset::create("test", documents);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("'a'"));
  EXPECT_THAT(refused.error().message(), HasSubstr("'b'"));
  documents[1].text = "Other start. " + words(20, 12);  // one word less
  EXPECT_TRUE(Dataset::create("test", documents));
}

TEST(Dataset, SeesOverlapThroughCaseAndPunctuation) {
  const std::string upper =
      "WORD1, WORD2; WORD3 word4 word5 word6 word7 - word8 word9 word10 word11 "
      "word12 word13!";
  EXPECT_FALSE(Dataset::create("test", {{.id = "a", .split = Split::kHoldout, .text = words(1, 20)},
                                        {.id = "b", .split = Split::kValidation, .text = upper}}));
}

TEST(Dataset, RefusesAnIdUsedTwice) {
  EXPECT_FALSE(Dataset::create("test", {{.id = "a", .text = "x"}, {.id = "a", .text = "y"}}));
}

TEST(Dataset, DigestCoversEveryByteOfItsSplitOnly) {
  const auto make = [](std::string text, std::string other) {
    return *Dataset::create("test", {{.id = "a", .split = Split::kValidation, .text = text},
                                     {.id = "b", .split = Split::kHoldout, .text = other}});
  };
  const auto a = make("one text", "rest");
  EXPECT_EQ(a.digest(Split::kValidation), make("one text", "changed").digest(Split::kValidation));
  EXPECT_NE(a.digest(Split::kValidation), make("one texT", "rest").digest(Split::kValidation));
}

TEST(DatasetFile, ReadsQuestionsAndAnswersAsText) {
  const TemporaryFile file("qa.jsonl",
                           "{\"question\": \"How many?\", \"answer\": \"Six.\"}\n\n"
                           "{\"text\": \"Plain.\", \"split\": \"holdout\", \"id\": \"p\"}\n");
  const auto dataset = Dataset::load(file.path());
  ASSERT_TRUE(dataset) << dataset.error().message();
  std::size_t total = 0;
  for (const Split split : {Split::kCalibration, Split::kValidation, Split::kHoldout}) {
    total += dataset->documents(split).size();
  }
  EXPECT_EQ(total, 2U);
  EXPECT_EQ(dataset->documents(Split::kHoldout).back()->id, "p");
}

TEST(DatasetFile, NamesTheBadLine) {
  const TemporaryFile file("bad.jsonl", "{\"text\": \"fine\"}\n{\"text\": }\n");
  const auto dataset = Dataset::load(file.path());
  ASSERT_FALSE(dataset);
  EXPECT_THAT(dataset.error().message(), HasSubstr("line 2"));
  const TemporaryFile wrong("wrong.jsonl", "{\"txt\": \"fine\"}\n");
  EXPECT_THAT(Dataset::load(wrong.path()).error().message(), HasSubstr("\"text\""));
  const TemporaryFile empty("empty.txt", " \n");
  EXPECT_THAT(Dataset::load(empty.path()).error().message(), HasSubstr("empty"));
  EXPECT_FALSE(Dataset::load("/nonexistent/file.txt"));
}

TEST(DatasetFile, CutsPlainTextAndKeepsRepeatedPassagesTogether) {
  std::string text;
  for (std::size_t i = 0; i < 60; ++i) {
    text += words(1000 * i, 150) + "\n\n";
    if (i % 7 == 0)
      text += "The same notice is printed here again and again, word for word, in full.\n\n";
  }
  const TemporaryFile file("text.txt", text);
  const auto dataset = Dataset::load(file.path());
  ASSERT_TRUE(dataset) << dataset.error().message();
  EXPECT_GT(dataset->documents(Split::kValidation).size(), 5U);
  EXPECT_GT(dataset->documents(Split::kCalibration).size(), 1U);
  std::string joined;  // nothing is lost: every split's text is part of the file
  for (const Document* d : dataset->documents(Split::kHoldout)) {
    EXPECT_NE(text.find(d->text), std::string::npos);
  }
}

TEST(DocumentSequences, AreDrawnInAFixedMixedOrder) {
  std::vector<Document> documents;
  for (int i = 0; i < 12; ++i) {
    documents.push_back({.id = fmt::format("{}", i),
                         .kind = i < 6 ? "code" : "prose",
                         .text = words(static_cast<std::size_t>(i) * 100, 20)});
  }
  const auto dataset = Dataset::create("test", documents);
  const testing::ByteTokenizer tokenizer;
  const auto set =
      make_document_sequences(*dataset, Split::kValidation, tokenizer, {.max_tokens = 50});
  ASSERT_TRUE(set);
  ASSERT_THAT(set->sequences, SizeIs(12));
  for (std::size_t i = 0; i + 1 < 12; i += 2) {  // kinds take turns
    EXPECT_NE(std::stoi(set->sequences[i].id) < 6, std::stoi(set->sequences[i + 1].id) < 6);
  }
  EXPECT_THAT(set->sequences[0].tokens, SizeIs(50));
  EXPECT_EQ(set->sequences[0].num_scored(), 50 - 1 - 8);
  const auto again =
      make_document_sequences(*dataset, Split::kValidation, tokenizer, {.max_tokens = 50});
  EXPECT_EQ(set->digest, again->digest);
  EXPECT_FALSE(make_document_sequences(*dataset, Split::kHoldout, tokenizer));
}

TEST(Windows, ScoreTheSecondHalfAndStartWithBosWhereTheModelHasIt) {
  const std::string text(103, 'a');
  const testing::ByteTokenizer plain;
  const auto set = make_windows(text, "test", plain, {.window = 20});
  ASSERT_TRUE(set);
  ASSERT_THAT(set->sequences, SizeIs(5));  // the rest is no whole window
  EXPECT_EQ(set->sequences[4].tokens.front(), 'a');
  EXPECT_EQ(set->sequences[4].first_scored, 10);
  EXPECT_EQ(set->sequences[4].num_scored(), 9);  // positions 10 .. 18
  const testing::ByteTokenizer with_bos(true);
  const auto marked = make_windows(text, "test", with_bos, {.window = 20, .max_windows = 2});
  ASSERT_THAT(marked->sequences, SizeIs(2));
  EXPECT_EQ(marked->sequences[1].tokens.front(), 0);
  EXPECT_FALSE(make_windows("short", "test", plain, {.window = 20}));
}

class ScriptedSampler final : public TextSampler {
 public:
  Result<std::vector<std::vector<TokenId>>> sample(std::int64_t count, std::int64_t max_tokens,
                                                   std::uint64_t seed) override {
    std::vector<std::vector<TokenId>> all(static_cast<std::size_t>(count));
    std::mt19937_64 random(seed);
    for (auto& tokens : all) {
      for (std::int64_t i = 0; i < max_tokens; ++i)
        tokens.push_back(static_cast<TokenId>(random() % 50));
    }
    all[5] = all[0];  // a model that repeats itself
    return all;
  }
};

TEST(SampledDataset, IsTheSameForTheSameSeedAndDropsLeaks) {
  ScriptedSampler sampler;
  const auto a = sample_dataset(sampler, 8, 40, 1);
  ASSERT_TRUE(a) << a.error().message();
  EXPECT_EQ(a->digest(Split::kValidation),
            sample_dataset(sampler, 8, 40, 1)->digest(Split::kValidation));
  EXPECT_NE(a->digest(Split::kValidation),
            sample_dataset(sampler, 8, 40, 2)->digest(Split::kValidation));
  EXPECT_THAT(a->documents(Split::kHoldout), SizeIs(1));  // sample 6 repeated sample 1
}

}  // namespace
}  // namespace spud::quality
