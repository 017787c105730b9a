// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/scorer.hpp"
#include "engine/testing/engine_fixture.hpp"

namespace spud::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(EngineTest, GeneratesUpToTheLimitAndCounts) {
  auto engine = make();
  Recorder recorder;
  ASSERT_TRUE(engine->submit(request("hello world", 7), recorder.sink()).has_value());
  const FinishEvent& finish = recorder.wait();
  EXPECT_EQ(finish.reason, FinishReason::kLength);
  EXPECT_EQ(finish.completion_tokens, 7);
  EXPECT_EQ(finish.prompt_tokens, static_cast<std::int64_t>(encode("hello world").size()));
  EXPECT_THAT(recorder.tokens(), SizeIs(7));
}

TEST_F(EngineTest, TextOfEventsIsTheTextOfTheTokens) {
  auto engine = make();
  Recorder recorder;
  GenerationRequest wanted = request("the ", 60);
  wanted.sampling.temperature = 1;
  wanted.sampling.seed = 3;
  ASSERT_TRUE(engine->submit(wanted, recorder.sink()).has_value());
  recorder.wait();
  tokenizer::StreamDecoder decoder(*tokenizer_);
  std::string expected;
  for (const TokenId id : recorder.ids()) expected += decoder.push(id);
  expected += decoder.finish();
  EXPECT_EQ(recorder.text(), expected);
}

TEST_F(EngineTest, GreedyTokensFollowTheScorersLogits) {
  const GenerationRequest wanted = request("once upon a time", 12);
  const std::vector<TokenId> generated = alone(wanted);
  std::vector<TokenId> text = wanted.prompt;
  text.insert(text.end(), generated.begin(), generated.end());
  concurrency::ThreadPool pool(1);
  auto scorer = *make_scorer(model_, pool);
  std::vector<TokenId> best;
  ASSERT_TRUE(scorer
                  ->score(text, static_cast<std::int64_t>(wanted.prompt.size()) - 1,
                          [&](std::int64_t, std::span<const float> logits) {
                            best.push_back(static_cast<TokenId>(std::ranges::max_element(logits) -
                                                                logits.begin()));
                          })
                  .has_value());
  best.pop_back();
  EXPECT_EQ(best, generated);
}

TEST_F(EngineTest, OutputDoesNotDependOnNeighboursChunksOrThreads) {
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<TokenId>> expected;
  for (int i = 0; i < 12; ++i) {
    GenerationRequest r = request(std::string(static_cast<std::size_t>(1 + i * 17), 'a' + i), 20);
    r.sampling.temperature = i % 2 == 0 ? 0.0F : 1.0F;
    r.sampling.seed = static_cast<std::uint64_t>(i);
    r.sampling.top_p = 0.9F;
    requests.push_back(r);
    expected.push_back(alone(r));
  }
  for (const std::int64_t step_rows : {16, 50, 256}) {
    auto engine = make({.max_sequences = 5, .step_rows = step_rows});
    std::vector<Recorder> recorders(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(engine->submit(requests[i], recorders[i].sink()).has_value());
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      recorders[i].wait();
      EXPECT_EQ(recorders[i].ids(), expected[i]) << i << " with step_rows " << step_rows;
    }
  }
}

TEST_F(EngineTest, StopStringEndsTheTextAndIsNotPartOfIt) {
  const GenerationRequest plain = request("the end", 40);
  auto engine = make();
  Recorder whole;
  ASSERT_TRUE(engine->submit(plain, whole.sink()).has_value());
  whole.wait();
  const std::string text = whole.text();
  ASSERT_GT(text.size(), 12U);
  GenerationRequest stopped = plain;
  stopped.stop = {text.substr(6, 4)};
  Recorder recorder;
  ASSERT_TRUE(engine->submit(stopped, recorder.sink()).has_value());
  const FinishEvent& finish = recorder.wait();
  EXPECT_EQ(finish.reason, FinishReason::kStop);
  EXPECT_EQ(finish.stop_matched, stopped.stop[0]);
  EXPECT_EQ(recorder.text(), text.substr(0, text.find(stopped.stop[0])));
}

TEST_F(EngineTest, EndOfGenerationTokenEndsUnlessIgnored) {
  const TokenId end = *tokenizer_->find_token("<|im_end|>");
  GenerationRequest wanted = request("hi", 5);
  wanted.sampling.logit_bias[end] = 1000;
  wanted.ignore_eos = false;
  auto engine = make();
  Recorder ended;
  ASSERT_TRUE(engine->submit(wanted, ended.sink()).has_value());
  EXPECT_EQ(ended.wait().reason, FinishReason::kStop);
  EXPECT_EQ(ended.wait().completion_tokens, 1);
  EXPECT_THAT(ended.tokens(), SizeIs(0));
  wanted.ignore_eos = true;
  Recorder ignored;
  ASSERT_TRUE(engine->submit(wanted, ignored.sink()).has_value());
  EXPECT_EQ(ignored.wait().reason, FinishReason::kLength);
  EXPECT_THAT(ignored.tokens(), SizeIs(5));
}

TEST_F(EngineTest, LogprobsAreThoseOfTheModel) {
  GenerationRequest wanted = request("numbers: ", 4);
  wanted.top_logprobs = 3;
  wanted.echo_prompt_logprobs = true;
  auto engine = make();
  Recorder recorder;
  ASSERT_TRUE(engine->submit(wanted, recorder.sink()).has_value());
  recorder.wait();
  ASSERT_THAT(recorder.prompt(), SizeIs(wanted.prompt.size()));
  ASSERT_THAT(recorder.tokens(), SizeIs(4));
  std::vector<TokenEvent> events = recorder.prompt();
  events.insert(events.end(), recorder.tokens().begin(), recorder.tokens().end());
  std::vector<TokenId> text;
  for (const TokenEvent& event : events) text.push_back(event.token);
  concurrency::ThreadPool pool(1);
  auto scorer = *make_scorer(model_, pool);
  std::size_t at = 1;
  ASSERT_TRUE(scorer
                  ->score(text, 0,
                          [&](std::int64_t, std::span<const float> logits) {
                            if (at == events.size()) return;
                            const TokenEvent& event = events[at++];
                            double sum = 0;
                            for (const float logit : logits) sum += std::exp(double{logit});
                            const auto index = static_cast<std::size_t>(event.token);
                            EXPECT_NEAR(event.logprob, logits[index] - std::log(sum), 1e-5);
                            ASSERT_THAT(event.top, SizeIs(3));
                            EXPECT_NEAR(event.top[0].logprob,
                                        *std::ranges::max_element(logits) - std::log(sum), 1e-5);
                            EXPECT_GE(event.top[0].logprob, event.top[1].logprob);
                          })
                  .has_value());
  EXPECT_EQ(at, events.size());
}

TEST_F(EngineTest, PromptLogprobsDoNotDependOnChunks) {
  GenerationRequest wanted = request(std::string(70, 'x') + " the and of", 2);
  wanted.top_logprobs = 0;
  wanted.echo_prompt_logprobs = true;
  std::vector<std::vector<float>> seen;
  for (const std::int64_t step_rows : {16, 256}) {
    auto engine = make({.step_rows = step_rows});
    Recorder recorder;
    ASSERT_TRUE(engine->submit(wanted, recorder.sink()).has_value());
    recorder.wait();
    auto& logprobs = seen.emplace_back();
    for (const TokenEvent& event : recorder.prompt()) logprobs.push_back(event.logprob);
    for (const TokenEvent& event : recorder.tokens()) logprobs.push_back(event.logprob);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_F(EngineTest, RefusesBadRequestsWithTheParameterAtFault) {
  auto engine = make({.context = 64});
  const auto param_of = [&](GenerationRequest bad) {
    Recorder recorder;
    const auto result = engine->submit(std::move(bad), recorder.sink());
    EXPECT_FALSE(result.has_value());
    if (result) return std::string("accepted");
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
    return result.error().param();
  };
  GenerationRequest r = request("x", 1);
  r.prompt.clear();
  EXPECT_EQ(param_of(r), "prompt");
  r = request("x", 1);
  r.prompt.push_back(300);
  EXPECT_EQ(param_of(r), "prompt");
  EXPECT_EQ(param_of(request("x", 0)), "max_tokens");
  EXPECT_EQ(param_of(request("x", 64)), "max_tokens");
  EXPECT_EQ(param_of(request("x", INT64_MAX)), "max_tokens");
  r = request("x", 1);
  r.sampling.top_p = 0;
  EXPECT_EQ(param_of(r), "top_p");
  r = request("x", 1);
  r.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(param_of(r), "temperature");
  r = request("x", 1);
  r.sampling.logit_bias[300] = 1;
  EXPECT_EQ(param_of(r), "logit_bias");
  r = request("x", 1);
  r.top_logprobs = 21;
  EXPECT_EQ(param_of(r), "top_logprobs");
  EXPECT_EQ(engine->stats().steps, 0);
}

TEST_F(EngineTest, RefusesOptionsThatCannotWork) {
  const auto error_of = [&](const EngineOptions& options) {
    const auto engine =
        make_engine({.model = model_, .tokenizer = tokenizer_, .clock = &clock_}, options);
    return engine ? "accepted" : engine.error().message();
  };
  EXPECT_THAT(error_of({.context = 513}), HasSubstr("context is 513"));
  EXPECT_THAT(error_of({.max_sequences = 0}), HasSubstr("max_sequences"));
  EXPECT_THAT(error_of({.kv_memory_bytes = 1000}), HasSubstr("--kv-memory (kv_memory) is 1000"));
}

// Holds the engine between steps, so that tests decide what happens between them.
class GatedEngineTest : public EngineTest {
 protected:
  void on_step(const StepReport&) override {
    std::unique_lock lock(mutex_);
    ++done_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return allowed_ > 0; });
    --allowed_;
  }
  void allow(int steps) {
    const std::scoped_lock lock(mutex_);
    allowed_ += steps;
    changed_.notify_all();
  }
  void wait_for_steps(int steps) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= steps; });
  }
  int steps_done() {
    const std::scoped_lock lock(mutex_);
    return done_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int done_ = 0;
  int allowed_ = 0;
};

constexpr int kForever = 1 << 20;

TEST_F(GatedEngineTest, CancelEndsWithinOneStepAndLeavesNeighboursAlone) {
  const GenerationRequest wanted = request("abc", 30);
  allow(kForever);
  const std::vector<TokenId> expected = alone(wanted);
  allow(-kForever + steps_done());
  const int before = steps_done();

  auto engine = make();
  Recorder cancelled;
  Recorder neighbour;
  const auto id = engine->submit(request("first", 400), cancelled.sink());
  ASSERT_TRUE(engine->submit(wanted, neighbour.sink()).has_value());
  wait_for_steps(before + 1);
  allow(2);
  wait_for_steps(before + 3);
  const std::size_t tokens_before = 3;
  engine->cancel(*id);
  engine->cancel(*id);
  engine->cancel(12345);
  allow(1);
  const FinishEvent& finish = cancelled.wait();
  EXPECT_EQ(finish.reason, FinishReason::kCancelled);
  EXPECT_LE(cancelled.tokens().size(), tokens_before);
  allow(kForever);
  EXPECT_EQ(neighbour.wait().reason, FinishReason::kLength);
  EXPECT_EQ(neighbour.ids(), expected);
}

TEST_F(GatedEngineTest, CancelIsSeenBetweenPromptChunks) {
  auto engine = make({.step_rows = 16});
  Recorder recorder;
  const auto id = engine->submit(request(std::string(200, 'q'), 4), recorder.sink());
  wait_for_steps(1);
  engine->cancel(*id);
  allow(kForever);
  EXPECT_EQ(recorder.wait().reason, FinishReason::kCancelled);
  EXPECT_THAT(recorder.tokens(), SizeIs(0));
  EXPECT_EQ(steps_done(), 1);
  EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages_total);
}

TEST_F(GatedEngineTest, FullQueueRefusesAndRecovers) {
  auto engine = make({.max_sequences = 1, .max_queue = 2});
  Recorder running;
  ASSERT_TRUE(engine->submit(request("a", 3), running.sink()).has_value());
  wait_for_steps(1);
  Recorder first;
  Recorder second;
  Recorder third;
  ASSERT_TRUE(engine->submit(request("b", 1), first.sink()).has_value());
  ASSERT_TRUE(engine->submit(request("c", 1), second.sink()).has_value());
  EXPECT_EQ(engine->stats().waiting, 2);
  const auto refused = engine->submit(request("d", 1), third.sink());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::kResourceExhausted);
  allow(kForever);
  first.wait();
  second.wait();
  EXPECT_TRUE(engine->submit(request("d", 1), third.sink()).has_value());
  third.wait();
}

TEST_F(GatedEngineTest, AnIdleEngineTakesABurstOfItsPlacesAndItsQueue) {
  auto engine = make({.max_sequences = 2, .max_queue = 1});
  Recorder recorders[3];
  for (Recorder& recorder : recorders) {
    EXPECT_TRUE(engine->submit(request("a", 1), recorder.sink()).has_value());
  }
  Recorder refused;
  EXPECT_FALSE(engine->submit(request("a", 1), refused.sink()).has_value());
  allow(kForever);
  for (Recorder& recorder : recorders) recorder.wait();
}

TEST_F(GatedEngineTest, DeadlineEndsRunningAndWaitingWithAnError) {
  auto engine = make({.max_sequences = 1});
  Recorder running;
  Recorder waiting;
  GenerationRequest wanted = request("a", 400);
  wanted.deadline = clock_.now() + std::chrono::seconds(1);
  ASSERT_TRUE(engine->submit(wanted, running.sink()).has_value());
  ASSERT_TRUE(engine->submit(wanted, waiting.sink()).has_value());
  wait_for_steps(1);
  clock_.advance(std::chrono::seconds(2));
  allow(kForever);
  for (Recorder* recorder : {&running, &waiting}) {
    const FinishEvent& finish = recorder->wait();
    EXPECT_EQ(finish.reason, FinishReason::kError);
    ASSERT_TRUE(finish.error.has_value());
    EXPECT_EQ(finish.error->code(), ErrorCode::kDeadlineExceeded);
  }
}

TEST_F(GatedEngineTest, DrainRefusesNewAndLetsRunningFinish) {
  auto engine = make();
  Recorder running;
  ASSERT_TRUE(engine->submit(request("a", 5), running.sink()).has_value());
  wait_for_steps(1);
  allow(kForever);
  engine->drain(clock_.now() + std::chrono::hours(1));
  EXPECT_EQ(running.wait().reason, FinishReason::kLength);
  Recorder late;
  const auto refused = engine->submit(request("b", 1), late.sink());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
}

TEST_F(GatedEngineTest, DrainPastItsDeadlineCancels) {
  auto engine = make();
  Recorder running;
  ASSERT_TRUE(engine->submit(request("a", 400), running.sink()).has_value());
  wait_for_steps(1);
  std::thread drainer([&] { engine->drain(clock_.now()); });
  // Only a drain that has begun refuses as unavailable; steps may go on from then.
  const GenerationSink ignore{.on_token = [](TokenEvent&&) {}, .on_finish = [](FinishEvent&&) {}};
  for (;;) {
    const auto late = engine->submit(request("b", 1), ignore);
    if (!late && late.error().code() == ErrorCode::kUnavailable) break;
    std::this_thread::yield();
  }
  allow(kForever);
  drainer.join();
  EXPECT_EQ(running.wait().reason, FinishReason::kCancelled);
}

TEST_F(EngineTest, ThrowingSinkEndsItsOwnGenerationOnly) {
  const GenerationRequest wanted = request("abc", 30);
  const std::vector<TokenId> expected = alone(wanted);
  auto engine = make();
  Recorder recorder;
  Recorder neighbour;
  GenerationSink sink = recorder.sink();
  sink.on_token = [](TokenEvent&&) { throw std::runtime_error("no thanks"); };
  ASSERT_TRUE(engine->submit(request("bad", 400), std::move(sink)).has_value());
  ASSERT_TRUE(engine->submit(wanted, neighbour.sink()).has_value());
  EXPECT_EQ(recorder.wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(recorder.wait().completion_tokens, 1);
  neighbour.wait();
  EXPECT_EQ(neighbour.ids(), expected);
}

TEST_F(EngineTest, PagesComeBackAndSmallMemoryOnlyDelays) {
  // Room for one full context of 512 (16 pages) and no more.
  const auto bytes = static_cast<std::int64_t>(model_->kv_geometry().page_bytes() * 16);
  auto engine = make({.max_sequences = 8, .kv_memory_bytes = bytes});
  std::vector<Recorder> recorders(10);
  for (Recorder& recorder : recorders) {
    ASSERT_TRUE(engine->submit(request("hello hello", 200), recorder.sink()).has_value());
  }
  for (Recorder& recorder : recorders) {
    EXPECT_EQ(recorder.wait().reason, FinishReason::kLength);
    EXPECT_EQ(recorder.ids(), recorders.front().ids());
  }
  engine->drain(clock_.now() + std::chrono::hours(1));
  EXPECT_EQ(engine->stats().kv_pages_total, 16);
  EXPECT_EQ(engine->stats().kv_pages_free, 16);
  EXPECT_EQ(engine->stats().running, 0);
  EXPECT_EQ(engine->stats().waiting, 0);
}

TEST_F(EngineTest, DestructionCancelsWhatRuns) {
  Recorder recorder;
  {
    auto engine = make();
    ASSERT_TRUE(engine->submit(request("a", 500), recorder.sink()).has_value());
    recorder.wait_for_tokens(1);
  }
  const FinishReason reason = recorder.wait().reason;
  EXPECT_TRUE(reason == FinishReason::kCancelled || reason == FinishReason::kLength);
}

TEST_F(EngineTest, ScorerRefusesWhatItCannotScore) {
  concurrency::ThreadPool pool(1);
  auto scorer = *make_scorer(model_, pool);
  const auto code = [&](std::vector<TokenId> text, std::int64_t first) {
    const auto result = scorer->score(text, first, [](std::int64_t, std::span<const float>) {});
    return result ? std::optional<ErrorCode>() : result.error().code();
  };
  EXPECT_EQ(code({}, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({1, 2}, 2), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({1, 300}, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(std::vector<TokenId>(513, 1), 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(std::vector<TokenId>(512, 1), 500), std::nullopt);
}

}  // namespace
}  // namespace spud::engine
