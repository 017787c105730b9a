// SPDX-License-Identifier: Apache-2.0
// What the door writes into the request log, and that clients notice nothing of it.
#include <gmock/gmock.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "gateway/request_log.hpp"
#include "gateway/testing/gateway_fixture.hpp"

namespace spud::gateway {
namespace {

namespace fs = std::filesystem;

class RequestLogRouteTest : public testing::GatewayTest {
 public:
  ~RequestLogRouteTest() override { fs::remove(path_); }

 protected:
  RequestLogRouteTest() {
    path_ = fs::temp_directory_path() / fmt::format("spud_log_route_{}.jsonl", ::getpid());
    log_ = *RequestLog::open(path_, 1 << 20, {.model = "tiny"});
    Setup setup{.request_log = log_.get()};
    setup.engine.script = [](const engine::GenerationRequest& request) -> Result<std::string> {
      if (request.prompt.front() == 'x') return fail(ErrorCode::kInternal, "broken");
      return "abc";
    };
    start(std::move(setup));
  }
  std::vector<LoggedGeneration> logged() const {
    std::ifstream in(path_);
    std::string line;
    std::getline(in, line);
    std::vector<LoggedGeneration> out;
    while (std::getline(in, line)) out.push_back(*parse_logged_generation(line));
    return out;
  }

  std::string path_;
  std::unique_ptr<RequestLog> log_;
};

TEST_F(RequestLogRouteTest, EveryChoiceIsLoggedWithItsSeedTokensAndLogprobs) {
  const auto answer =
      post("/v1/completions", R"({"prompt":"hi","max_tokens":9,"n":2,"seed":5,"temperature":0.5})");
  ASSERT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("\"logprobs\":null"), std::string::npos) << answer.body;
  const auto generations = logged();
  ASSERT_EQ(generations.size(), 2U);
  const auto requests = engine_->requests();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(generations[i].prompt, requests[i].prompt);
    EXPECT_EQ(generations[i].max_tokens, 9);
    EXPECT_EQ(generations[i].sampling.temperature, 0.5F);
    ASSERT_GE(generations[i].tokens.size(), 3U);
    EXPECT_EQ(generations[i].logprob_bits.front(), std::bit_cast<std::uint32_t>(-0.5F));
  }
  EXPECT_NE(generations[0].sampling.seed, generations[1].sampling.seed);
  EXPECT_EQ(std::string(answer.header("x-request-id")), generations[0].id);
}

TEST_F(RequestLogRouteTest, WhatFailedIsNotLogged) {
  EXPECT_NE(post("/v1/completions", R"({"prompt":"x","max_tokens":9})").status, 200);
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"hi","max_tokens":9})").status, 200);
  EXPECT_EQ(logged().size(), 1U);
}

}  // namespace
}  // namespace spud::gateway
