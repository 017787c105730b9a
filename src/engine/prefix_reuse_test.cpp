// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "engine/testing/engine_fixture.hpp"

namespace spud::engine {
namespace {

class PrefixReuseTest : public EngineTest {
 protected:
  const FinishEvent& run(Engine& engine, const GenerationRequest& request, Recorder& recorder) {
    EXPECT_TRUE(engine.submit(request, recorder.sink()).has_value());
    return recorder.wait();
  }
  GenerationRequest sampled(std::string_view prompt, std::int64_t max_tokens) const {
    GenerationRequest wanted = request(prompt, max_tokens);
    wanted.sampling.temperature = 1;
    wanted.sampling.seed = 7;
    wanted.top_logprobs = 2;
    return wanted;
  }
  std::string long_prompt() const { return std::string(100, 'x') + " and the end"; }
};

std::vector<float> logprobs(const Recorder& recorder) {
  std::vector<float> out;
  for (const TokenEvent& event : recorder.tokens()) {
    out.push_back(event.logprob);
    for (const TokenLogprob& top : event.top) out.push_back(top.logprob);
  }
  return out;
}

TEST_F(PrefixReuseTest, SecondRequestFindsThePromptAndGivesTheSameBits) {
  auto engine = make();
  const GenerationRequest wanted = sampled(long_prompt(), 20);
  Recorder cold;
  Recorder warm;
  EXPECT_EQ(run(*engine, wanted, cold).cached_tokens, 0);
  const auto full = static_cast<std::int64_t>((wanted.prompt.size() - 1) / 32 * 32);
  ASSERT_GT(full, 0);
  EXPECT_EQ(run(*engine, wanted, warm).cached_tokens, full);
  EXPECT_EQ(warm.ids(), cold.ids());
  EXPECT_EQ(logprobs(warm), logprobs(cold));
  EXPECT_EQ(engine->stats().prefix_tokens_found, full);
  EXPECT_EQ(engine->stats().prefix_tokens_looked_up,
            2 * static_cast<std::int64_t>(wanted.prompt.size()));
  EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages_total);
  EXPECT_GT(engine->stats().kv_pages_cached, 0);
}

TEST_F(PrefixReuseTest, ConversationContinuesFromWhatWasGenerated) {
  auto engine = make();
  const GenerationRequest first = request(long_prompt(), 60);
  Recorder turn;
  run(*engine, first, turn);
  GenerationRequest second = first;
  for (const TokenId token : turn.ids()) second.prompt.push_back(token);
  second.prompt.push_back(5);
  second.max_tokens = 10;
  const std::vector<TokenId> expected = alone(second);
  Recorder next;
  // The last generated token was never computed, all before it were.
  const auto computed = static_cast<std::int64_t>(first.prompt.size()) + 59;
  EXPECT_EQ(run(*engine, second, next).cached_tokens, computed / 32 * 32);
  EXPECT_EQ(next.ids(), expected);
}

TEST_F(PrefixReuseTest, OtherTenantsAndTheSwitchFindNothing) {
  auto engine = make();
  GenerationRequest wanted = sampled(long_prompt(), 5);
  Recorder first;
  run(*engine, wanted, first);
  wanted.tenant = "other";
  Recorder second;
  EXPECT_EQ(run(*engine, wanted, second).cached_tokens, 0);
  EXPECT_EQ(second.ids(), first.ids());
  auto off = make({.prefix_cache = false});
  Recorder third;
  Recorder fourth;
  run(*off, wanted, third);
  EXPECT_EQ(run(*off, wanted, fourth).cached_tokens, 0);
  EXPECT_EQ(fourth.ids(), first.ids());
  EXPECT_EQ(off->stats().kv_pages_cached, 0);
}

TEST_F(PrefixReuseTest, ScoredPromptsAreComputedInFullAndScoredAlike) {
  auto engine = make();
  GenerationRequest wanted = sampled(long_prompt(), 2);
  wanted.echo_prompt_logprobs = true;
  Recorder first;
  Recorder second;
  run(*engine, wanted, first);
  EXPECT_EQ(run(*engine, wanted, second).cached_tokens, 0);
  ASSERT_EQ(second.prompt().size(), wanted.prompt.size());
  for (std::size_t i = 0; i < first.prompt().size(); ++i) {
    EXPECT_EQ(first.prompt()[i].logprob, second.prompt()[i].logprob);
  }
}

// 16 pages of memory, prompts of 4 pages that differ: the cache must give way, oldest first.
TEST_F(PrefixReuseTest, CacheGivesWayWhenPagesAreNeeded) {
  const auto bytes = static_cast<std::int64_t>(model_->kv_geometry().page_bytes() * 16);
  auto engine = make({.max_sequences = 2, .kv_memory_bytes = bytes});
  for (char c = 'a'; c < 'k'; ++c) {
    GenerationRequest wanted = request(std::string(130, c), 4);
    const std::vector<TokenId> expected = alone(wanted);
    Recorder recorder;
    run(*engine, wanted, recorder);
    EXPECT_EQ(recorder.ids(), expected);
  }
  Recorder latest;
  EXPECT_GT(run(*engine, request(std::string(130, 'j'), 4), latest).cached_tokens, 0);
  Recorder oldest;
  EXPECT_EQ(run(*engine, request(std::string(130, 'a'), 4), oldest).cached_tokens, 0);
  EXPECT_GT(engine->stats().prefix_pages_evicted, 0);
  EXPECT_EQ(engine->stats().kv_pages_free, 16);
}

// Eight prompts of six pages of which five are common: 48 pages without sharing, 13 with it. All of
// them are there before the first one's second step.
class FleetTest : public PrefixReuseTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void on_step(const StepReport& report) override {
    const std::scoped_lock lock(gate_);
    most_decoding_ = std::max(most_decoding_, report.decode_tokens);
  }
  std::int64_t most_decoding(bool prefix_cache) {
    const auto bytes = static_cast<std::int64_t>(model_->kv_geometry().page_bytes() * 30);
    auto engine = make({.context = 256,
                        .max_sequences = 8,
                        .kv_memory_bytes = bytes,
                        .prefix_cache = prefix_cache,
                        .speculation = false,
                        .scheduler = GetParam()});
    GenerationRequest wanted = request("", 1);
    wanted.prompt.assign(160, 5);
    wanted.prompt.push_back(6);
    Recorder first;
    run(*engine, wanted, first);
    most_decoding_ = 0;
    wanted.max_tokens = 31;  // to the end of the sixth page
    std::vector<Recorder> recorders(8);
    {
      const std::scoped_lock lock(gate_);
      for (Recorder& recorder : recorders) {
        EXPECT_TRUE(engine->submit(wanted, recorder.sink()).has_value());
      }
    }
    for (Recorder& recorder : recorders) {
      recorder.wait();
      EXPECT_EQ(recorder.ids(), recorders[0].ids());
    }
    EXPECT_EQ(engine->stats().preemptions, 0);
    EXPECT_EQ(engine->stats().kv_pages_free, 30);
    engine.reset();
    return most_decoding_;
  }
  std::mutex gate_;
  std::int64_t most_decoding_ = 0;
};

TEST_P(FleetTest, BehindACachedPrefixRunsAtOnceWhereItsPagesWouldNotDo) {
  EXPECT_EQ(most_decoding(/*prefix_cache=*/true), 8);
  EXPECT_LE(most_decoding(/*prefix_cache=*/false), 5);
}

INSTANTIATE_TEST_SUITE_P(Policies, FleetTest, ::testing::Values("fair", "fifo"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace spud::engine
