// SPDX-License-Identifier: Apache-2.0
#include "gateway/request_log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>

namespace spud::gateway {
namespace {

namespace fs = std::filesystem;

LoggedGeneration sample() {
  LoggedGeneration generation{.id = "req-1",
                              .prompt = {1, 2, 300000},
                              .max_tokens = 9,
                              .stop = {"\n\"", "é"},
                              .ignore_eos = true,
                              .tokens = {7, 8},
                              .logprob_bits = {std::bit_cast<std::uint32_t>(-0.1F), 0xff800000U}};
  generation.sampling = {.temperature = 0.7F,
                         .top_k = 40,
                         .top_p = 0.1F,
                         .logit_bias = {{5, -1.5F}},
                         .seed = 0xfedcba9876543210ULL};
  return generation;
}

class RequestLogTest : public ::testing::Test {
 public:
  RequestLogTest() { fs::create_directories(folder_); }
  ~RequestLogTest() override { fs::remove_all(folder_); }

 protected:
  static std::vector<std::string> lines_of(const fs::path& path) {
    std::ifstream in(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  fs::path folder_ = fs::temp_directory_path() / fmt::format("spud_request_log_{}", ::getpid());
  std::string path_ = folder_ / "log.jsonl";
};

TEST(LoggedGeneration, ComesBackBitForBit) {
  const LoggedGeneration before = sample();
  const auto after = parse_logged_generation(to_json_line(before));
  ASSERT_TRUE(after.has_value()) << after.error().message();
  EXPECT_EQ(after->prompt, before.prompt);
  EXPECT_EQ(after->sampling.temperature, before.sampling.temperature);
  EXPECT_EQ(after->sampling.top_p, before.sampling.top_p);
  EXPECT_EQ(after->sampling.logit_bias, before.sampling.logit_bias);
  EXPECT_EQ(after->sampling.seed, before.sampling.seed);
  EXPECT_EQ(after->stop, before.stop);
  EXPECT_EQ(after->tokens, before.tokens);
  EXPECT_EQ(after->logprob_bits, before.logprob_bits);
  EXPECT_TRUE(after->ignore_eos);
}

TEST(LoggedGeneration, OtherLinesAreRefused) {
  EXPECT_FALSE(parse_logged_generation("{}").has_value());
  EXPECT_FALSE(parse_logged_generation("nonsense").has_value());
  EXPECT_FALSE(parse_request_log_head(R"({"spud_request_log":2})").has_value());
  const auto garbage = parse_request_log_head("GGUF");
  ASSERT_FALSE(garbage.has_value());
  EXPECT_EQ(garbage.error().message(), "not the head of a request log: syntax error");
  LoggedGeneration uneven = sample();
  uneven.tokens.push_back(1);
  EXPECT_FALSE(parse_logged_generation(to_json_line(uneven)).has_value());
}

TEST_F(RequestLogTest, BeginsWithTheHeadAndIsForItsOwnerOnly) {
  auto log = RequestLog::open(path_, 1 << 20, {.model = "m", .digest = "d", .kv_type = "int8"});
  ASSERT_TRUE(log.has_value()) << log.error().message();
  (*log)->write(sample());
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(parse_request_log_head(lines[0])->digest, "d");
  EXPECT_EQ(parse_logged_generation(lines[1])->id, "req-1");
  EXPECT_EQ(fs::status(path_).permissions() & fs::perms::all,
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(RequestLogTest, TwoFilesAtMostAndEachHasAHead) {
  constexpr std::size_t kLimit = 2000;
  auto log = RequestLog::open(path_, kLimit, {.model = "m"});
  ASSERT_TRUE(log.has_value());
  for (int i = 0; i < 50; ++i) (*log)->write(sample());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
  for (const std::string& path : {path_, path_ + ".1"}) {
    EXPECT_LE(fs::file_size(path), kLimit);
    EXPECT_TRUE(parse_request_log_head(lines_of(path)[0]).has_value());
  }
}

TEST_F(RequestLogTest, AnOlderLogMovesAside) {
  ASSERT_TRUE(RequestLog::open(path_, 1000, {.model = "first"}).has_value());
  ASSERT_TRUE(RequestLog::open(path_, 1000, {.model = "second"}).has_value());
  EXPECT_EQ(parse_request_log_head(lines_of(path_)[0])->model, "second");
  EXPECT_EQ(parse_request_log_head(lines_of(path_ + ".1")[0])->model, "first");
}

TEST_F(RequestLogTest, APlaceThatCannotBeWrittenIsAnError) {
  EXPECT_FALSE(RequestLog::open((folder_ / "none" / "log").string(), 1000, {}).has_value());
}

}  // namespace
}  // namespace spud::gateway
