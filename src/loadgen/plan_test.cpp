// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>

#include "loadgen/arrivals.hpp"
#include "loadgen/prompts.hpp"
#include "loadgen/slo.hpp"
#include "loadgen/tenant.hpp"
#include "loadgen/trace.hpp"

namespace spud::loadgen {
namespace {

using std::chrono::seconds;

struct Gaps {
  double mean = 0;
  double cv = 0;
};

Gaps gaps_of(const std::vector<Planned>& planned) {
  double sum = 0;
  double squares = 0;
  const auto n = static_cast<double>(planned.size() - 1);
  for (std::size_t i = 1; i < planned.size(); ++i) {
    const double gap = std::chrono::duration<double>(planned[i].at - planned[i - 1].at).count();
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / n;
  return {.mean = mean, .cv = std::sqrt(squares / n - mean * mean) / mean};
}

std::vector<Planned> open_plan(TenantOptions tenant, seconds duration, std::uint64_t seed = 1) {
  auto plan = make_plan({std::move(tenant)}, duration, seed);
  EXPECT_TRUE(plan.has_value()) << plan.error().message();
  return plan ? plan->open : std::vector<Planned>{};
}

TEST(Arrivals, PoissonHasTheRateAndExponentialGaps) {
  const auto planned = open_plan({.rate = 50}, seconds(200));
  EXPECT_NEAR(static_cast<double>(planned.size()), 10'000, 300);
  const Gaps gaps = gaps_of(planned);
  EXPECT_NEAR(gaps.mean, 0.02, 0.001);
  EXPECT_NEAR(gaps.cv, 1, 0.05);
}

TEST(Arrivals, GammaHasTheRateAndTheAskedVariation) {
  for (const double cv : {0.5, 2.0, 4.0}) {
    const auto planned =
        open_plan({.arrivals = ArrivalKind::kGamma, .rate = 100, .cv = cv}, seconds(500));
    const Gaps gaps = gaps_of(planned);
    EXPECT_NEAR(gaps.mean, 0.01, 0.001) << cv;
    EXPECT_NEAR(gaps.cv, cv, 0.1 * cv) << cv;
  }
}

TEST(Arrivals, ConstantAndBurstAreExact) {
  const auto constant =
      open_plan({.arrivals = ArrivalKind::kConstant, .rate = 4, .start_s = 1}, seconds(3));
  ASSERT_EQ(constant.size(), 8U);
  EXPECT_EQ(constant[0].at, seconds(1));
  EXPECT_EQ(constant[4].at, seconds(2));
  const auto burst =
      open_plan({.arrivals = ArrivalKind::kBurst, .requests = 5, .start_s = 2}, seconds(3));
  ASSERT_EQ(burst.size(), 5U);
  EXPECT_EQ(burst[4].at, seconds(2));
}

TEST(Arrivals, OneSeedIsOnePlanAndLengthsStayInRange) {
  const TenantOptions tenant{.rate = 20, .prompt = {100, 200}, .output = {5, 9}};
  const auto first = open_plan(tenant, seconds(10), 7);
  const auto again = open_plan(tenant, seconds(10), 7);
  const auto other = open_plan(tenant, seconds(10), 8);
  ASSERT_EQ(first.size(), again.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].at, again[i].at);
    EXPECT_EQ(first[i].seed, again[i].seed);
    EXPECT_GE(first[i].prompt_tokens, 100);
    EXPECT_LE(first[i].prompt_tokens, 200);
    EXPECT_GE(first[i].output_tokens, 5);
    EXPECT_LE(first[i].output_tokens, 9);
  }
  EXPECT_NE(first.front().at, other.front().at);
}

TEST(Arrivals, TenantsAreMergedInOrderOfTime) {
  const auto plan = make_plan({{.name = "a", .rate = 10},
                               {.name = "b", .arrivals = ArrivalKind::kConstant, .rate = 10},
                               {.name = "c", .arrivals = ArrivalKind::kClosed, .requests = 3}},
                              seconds(5), 1);
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(std::ranges::is_sorted(plan->open, {}, &Planned::at));
  EXPECT_EQ(std::ranges::count(plan->open, 1, &Planned::tenant), 50);
  ASSERT_EQ(plan->closed.size(), 3U);
  EXPECT_EQ(plan->closed[2].size(), 3U);
  EXPECT_TRUE(plan->closed[0].empty());
}

TEST(Arrivals, APlanThatIsTooLongIsRefused) {
  const auto plan = make_plan({{.rate = 1e5}}, std::chrono::hours(1), 1);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code(), ErrorCode::kInvalidArgument);
}

TEST(Trace, AzureRowsAndMooncakeLinesAreReadAndTimeStartsAtZero) {
  const auto azure = parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 23:59:59.5000000,374,44\r\n"
      "2023-11-17 00:00:01.0000000,396,109\r\n");
  ASSERT_TRUE(azure.has_value()) << azure.error().message();
  ASSERT_EQ(azure->size(), 2U);
  EXPECT_EQ((*azure)[0].at_s, 0);
  EXPECT_NEAR((*azure)[1].at_s, 1.5, 1e-6);
  EXPECT_EQ((*azure)[1].prompt_tokens, 396);
  EXPECT_EQ((*azure)[1].output_tokens, 109);
  const auto mooncake = parse_trace(
      "{\"timestamp\": 1500, \"input_length\": 7, \"output_length\": 5, \"hash_ids\": [0]}\n"
      "{\"timestamp\": 500, \"input_length\": 9, \"output_length\": 6}\n");
  ASSERT_TRUE(mooncake.has_value()) << mooncake.error().message();
  EXPECT_EQ((*mooncake)[0].prompt_tokens, 9);
  EXPECT_NEAR((*mooncake)[1].at_s, 1, 1e-9);
}

TEST(Trace, ABrokenLineIsNamed) {
  const auto broken =
      parse_trace("{\"timestamp\": 1, \"input_length\": 7, \"output_length\": 5}\nnonsense\n");
  ASSERT_FALSE(broken.has_value());
  EXPECT_NE(broken.error().message().find("line 2"), std::string::npos);
  EXPECT_FALSE(parse_trace("").has_value());
  EXPECT_FALSE(parse_trace("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-40 00:00:00,1,1\n")
                   .has_value());
}

TEST(Trace, ReplayScalesTimeAndTakesTheLengths) {
  const TenantOptions tenant{
      .arrivals = ArrivalKind::kTrace, .speed = 2, .trace = {{0, 10, 1}, {4, 20, 2}, {100, 30, 3}}};
  const auto planned = open_plan(tenant, seconds(10));
  ASSERT_EQ(planned.size(), 2U);  // the third comes after the end
  EXPECT_EQ(planned[1].at, seconds(2));
  EXPECT_EQ(planned[1].prompt_tokens, 20);
  EXPECT_EQ(planned[1].output_tokens, 2);
}

TEST(Trace, ThePublishedTracesAreRead) {
  const char* named = std::getenv("SPUD_SHARED");
  const std::filesystem::path shared = named != nullptr ? named : SPUD_SOURCE_DIR "/../shared";
  const auto path = shared / "traces/azure_llm_2023_conv.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace.has_value()) << trace.error().message();
  EXPECT_EQ(trace->size(), 19366U);
  EXPECT_EQ(trace->front().prompt_tokens, 374);
  const auto mooncake = read_trace(shared / "traces/mooncake_conversation.jsonl");
  ASSERT_TRUE(mooncake.has_value()) << mooncake.error().message();
}

TEST(Tenant, TextOverridesTheBase) {
  const auto tenant =
      parse_tenant("name=flood,key=K,arrivals=burst,requests=64,prompt=1000,output=16-20,prefix=32",
                   {.rate = 3});
  ASSERT_TRUE(tenant.has_value()) << tenant.error().message();
  EXPECT_EQ(tenant->name, "flood");
  EXPECT_EQ(tenant->api_key, "K");
  EXPECT_EQ(tenant->arrivals, ArrivalKind::kBurst);
  EXPECT_EQ(tenant->requests, 64);
  EXPECT_EQ(tenant->prompt.least, 1000);
  EXPECT_EQ(tenant->output.most, 20);
  EXPECT_EQ(tenant->shared_prefix, 32);
  EXPECT_EQ(tenant->rate, 3);
}

TEST(Tenant, WhatIsWrongIsNamed) {
  for (const auto* text : {"rate=0", "rate=x", "colour=red", "prompt=0", "prompt=9-3",
                           "arrivals=burst", "nonsense", "clients=0"}) {
    EXPECT_FALSE(parse_tenant(text, {}).has_value()) << text;
  }
}

TEST(Slo, IsReadAsPeopleWriteIt) {
  const auto slo = parse_slo("ttft=500ms, tpot=50ms,e2e=1.5s");
  ASSERT_TRUE(slo.has_value()) << slo.error().message();
  EXPECT_EQ(slo->ttft, std::chrono::milliseconds(500));
  EXPECT_EQ(slo->tpot, std::chrono::milliseconds(50));
  EXPECT_EQ(slo->e2e, std::chrono::milliseconds(1500));
  EXPECT_EQ(to_string(*slo), "ttft=500ms,tpot=50ms,e2e=1500ms");
  for (const auto* text : {"ttft", "ttft=5", "ttft=-1ms", "speed=1ms", "ttft=ms"}) {
    EXPECT_FALSE(parse_slo(text).has_value()) << text;
  }
}

TEST(Prompts, TokenPromptsHaveExactLengthsAndShareThePrefixOnly) {
  const PromptMaker maker(
      {.form = PromptForm::kTokens, .model = "m\"x", .token_pool = {11, 12, 13, 14, 15, 16, 17}});
  EXPECT_EQ(maker.path(), "/v1/completions");
  const auto ids = [&maker](std::uint64_t seed) {
    const auto body =
        boost::json::parse(maker.body({.prompt_tokens = 20, .output_tokens = 9, .seed = seed}, 30));
    EXPECT_EQ(body.at("model").as_string(), "m\"x");
    EXPECT_EQ(body.at("max_tokens").as_int64(), 9);
    return boost::json::value_to<std::vector<int>>(body.at("prompt"));
  };
  const auto first = ids(1);
  const auto second = ids(2);
  ASSERT_EQ(first.size(), 50U);
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 30, second.begin()));
  EXPECT_NE(first, second);
  EXPECT_EQ(first, ids(1));
}

TEST(Prompts, ChatPutsThePrefixIntoTheSystemMessage) {
  const PromptMaker maker({.form = PromptForm::kChat});
  EXPECT_EQ(maker.path(), "/v1/chat/completions");
  const auto body =
      boost::json::parse(maker.body({.prompt_tokens = 3, .output_tokens = 1, .seed = 1}, 2));
  ASSERT_EQ(body.at("messages").as_array().size(), 2U);
  EXPECT_EQ(body.at("messages").at(0).at("role").as_string(), "system");
  const auto alone =
      boost::json::parse(maker.body({.prompt_tokens = 3, .output_tokens = 1, .seed = 1}, 0));
  EXPECT_EQ(alone.at("messages").as_array().size(), 1U);
}

}  // namespace
}  // namespace spud::loadgen
