// SPDX-License-Identifier: Apache-2.0
// A thousand random schedules over a tiny model: arrivals, lengths, chunk sizes, preemptions,
// cancellations, prefix cache and speculation on and off, one and two threads, every instruction
// set of this machine. Whatever the schedule, a request's tokens and log-probabilities are bitwise
// those it has alone, and every page comes back.
#include <gmock/gmock.h>

#include <bit>
#include <random>

#include "engine/engine_core.hpp"
#include "engine/testing/engine_fixture.hpp"

namespace spud::engine {
namespace {

using scheduler::RunningView;
using scheduler::StepPlan;
using scheduler::WaitingView;

// Does anything that the rules allow.
class RandomScheduler final : public scheduler::Scheduler {
 public:
  explicit RandomScheduler(std::uint64_t seed) : random_(seed) {}

  StepPlan plan(const scheduler::SchedulerInput& input) override {
    StepPlan plan;
    std::int64_t running = std::ssize(input.running);
    const std::int64_t most = 1 + below(4);
    for (const RunningView& view : input.running) {
      // The first one stays, so that somebody always gets on.
      if (&view != &input.running.front() && below(12) == 0) {
        plan.preempt.push_back(view.id);
        --running;
      } else if (view.prefilled >= view.prompt_tokens) {
        if (below(8) != 0) plan.decode.push_back(view.id);
      } else if (below(6) != 0) {
        plan.prefill.push_back({.id = view.id, .num_tokens = 1 + below(40)});
      }
    }
    for (const WaitingView& view : input.waiting) {
      if (running >= most || (running > 0 && below(3) == 0)) continue;
      plan.admit.push_back(view.id);
      ++running;
      if (below(3) != 0) plan.prefill.push_back({.id = view.id, .num_tokens = 1 + below(80)});
    }
    // Without pages for the others the first one must be able to go on.
    if (input.free_pages < 4) {
      for (std::size_t i = 1; i < input.running.size(); ++i) {
        const auto id = input.running[i].id;
        if (std::ranges::find(plan.preempt, id) == plan.preempt.end()) plan.preempt.push_back(id);
      }
    }
    return plan;
  }
  void observe(const scheduler::StepCost&) override {}

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::mt19937_64 random_;
};

struct Bits {
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> logprobs;
  std::string text;
  bool operator==(const Bits&) const = default;
};

void add_bits(Bits& bits, const TokenEvent& event) {
  bits.ids.push_back(event.token);
  bits.logprobs.push_back(std::bit_cast<std::uint32_t>(event.logprob));
  for (const TokenLogprob& top : event.top) {
    bits.ids.push_back(top.token);
    bits.logprobs.push_back(std::bit_cast<std::uint32_t>(top.logprob));
  }
}

Bits bits_of(const Recorder& recorder) {
  Bits bits{.text = recorder.text()};
  for (const TokenEvent& event : recorder.prompt()) add_bits(bits, event);
  for (const TokenEvent& event : recorder.tokens()) add_bits(bits, event);
  return bits;
}

class RandomScheduleTest : public ::testing::TestWithParam<kernels::Isa> {
 protected:
  RandomScheduleTest() {
    const model::testing::TinyModelFile file({.num_layers = 1,
                                              .hidden = 32,
                                              .num_heads = 2,
                                              .num_kv_heads = 1,
                                              .ffn = 64,
                                              .context_length = 256});
    auto opened = formats::ModelFile::open(file.path());
    concurrency::ThreadPool pool(1);
    model_ = *model::Model::load(*opened, pool, {.isa_limit = GetParam()});
    tokenizer_ = *tokenizer::Tokenizer::create((*opened)->metadata());
  }

  struct Switches {
    int threads = 1;
    bool prefix_cache = false;
    bool speculation = false;
  };
  std::unique_ptr<EngineCore> make(std::unique_ptr<scheduler::Scheduler> policy, Switches switches,
                                   std::size_t pages) {
    auto cache = *kvcache::KvCache::create(model_->kv_geometry(kernels::kDefaultKvType), pages);
    return std::make_unique<EngineCore>(
        EngineParts{.model = model_, .tokenizer = tokenizer_, .clock = &clock_},
        EngineCoreOptions{.context = 256,
                          .max_sequences = 16,
                          .max_queue = 64,
                          .num_threads = switches.threads,
                          .prefix_cache = switches.prefix_cache,
                          .speculation = switches.speculation},
        std::move(cache), std::move(policy));
  }

  // Requests that begin alike in groups, so that they meet in the prefix cache.
  std::vector<GenerationRequest> make_requests(std::mt19937_64& random, std::size_t count) const {
    std::vector<GenerationRequest> requests;
    for (std::size_t i = 0; i < count; ++i) {
      GenerationRequest r;
      const std::size_t common = random() % 2 == 0 ? 70 : 0;
      r.prompt.assign(common, static_cast<TokenId>(65 + random() % 2));
      for (std::size_t extra = 1 + random() % 60; extra > 0; --extra) {
        r.prompt.push_back(static_cast<TokenId>(random() % 256));
      }
      r.max_tokens = static_cast<std::int64_t>(1 + random() % 40);
      r.ignore_eos = true;
      r.top_logprobs = static_cast<std::int32_t>(random() % 4) - 1;
      r.echo_prompt_logprobs = r.top_logprobs >= 0 && random() % 4 == 0;
      r.sampling.temperature = random() % 3 == 0 ? 0.0F : 0.9F;
      r.sampling.top_p = random() % 2 == 0 ? 1.0F : 0.8F;
      r.sampling.repetition_penalty = random() % 4 == 0 ? 1.2F : 1.0F;
      r.sampling.frequency_penalty = random() % 4 == 0 ? 0.3F : 0.0F;
      r.sampling.seed = random();
      r.tenant = random() % 4 == 0 ? "b" : "a";
      requests.push_back(std::move(r));
    }
    return requests;
  }

  std::shared_ptr<const model::Model> model_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  concurrency::FakeClock clock_;
};

TEST_P(RandomScheduleTest, AnyScheduleGivesTheBitsOfTheLoneRun) {
  if (model_->kernel_table().isa != GetParam()) GTEST_SKIP() << "not on this machine";
  std::mt19937_64 random(42);
  constexpr std::size_t kRequests = 24;
  const std::vector<GenerationRequest> requests = make_requests(random, kRequests);
  std::vector<Bits> expected;
  for (const GenerationRequest& request : requests) {
    auto engine = make(*scheduler::make_scheduler("fifo", {}), {}, 16);
    Recorder recorder;
    ASSERT_TRUE(engine->submit(request, recorder.sink()).has_value());
    recorder.wait();
    expected.push_back(bits_of(recorder));
  }
  const int num_schedules = GetParam() == kernels::Isa::kScalar ? 200 : 400;
  std::int64_t preemptions = 0;
  std::int64_t found = 0;
  std::int64_t guessed = 0;
  std::int64_t kept = 0;
  for (int schedule = 0; schedule < num_schedules; ++schedule) {
    SCOPED_TRACE(schedule);
    const bool fair = random() % 4 == 0;
    std::unique_ptr<scheduler::Scheduler> policy =
        fair ? *scheduler::make_scheduler(
                   "fair", {.max_sequences = static_cast<std::int64_t>(1 + random() % 8),
                            .step_rows = static_cast<std::int64_t>(16 + random() % 100)})
             : std::make_unique<RandomScheduler>(random());
    // From barely one full context to plenty.
    auto engine = make(std::move(policy),
                       {.threads = static_cast<int>(1 + random() % 2),
                        .prefix_cache = random() % 3 != 0,
                        .speculation = random() % 3 != 0},
                       8 + random() % 24);
    std::vector<std::size_t> chosen;
    for (std::size_t count = 2 + random() % 6; count > 0; --count) {
      chosen.push_back(random() % kRequests);
    }
    std::vector<Recorder> recorders(chosen.size());
    std::vector<bool> cancelled(chosen.size(), false);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto id = engine->submit(requests[chosen[i]], recorders[i].sink());
      ASSERT_TRUE(id.has_value());
      if (random() % 8 == 0) {
        if (random() % 2 == 0) recorders[i].wait_for_tokens(1 + random() % 3);
        engine->cancel(*id);
        cancelled[i] = true;
      } else if (random() % 4 == 0) {
        recorders[i].wait_for_tokens(1);  // the next one arrives later
      }
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const FinishEvent& finish = recorders[i].wait();
      if (cancelled[i] && finish.reason == FinishReason::kCancelled) continue;
      ASSERT_EQ(finish.reason, FinishReason::kLength);
      ASSERT_EQ(bits_of(recorders[i]), expected[chosen[i]]) << "request " << chosen[i];
    }
    engine->drain(clock_.now() + std::chrono::hours(1));
    const EngineStats stats = engine->stats();
    ASSERT_EQ(stats.kv_pages_free, stats.kv_pages_total);
    ASSERT_EQ(stats.running + stats.waiting, 0);
    ASSERT_TRUE(stats.tenants.empty());
    preemptions += stats.preemptions;
    found += stats.prefix_tokens_found;
    guessed += stats.guessed_tokens;
    kept += stats.guessed_tokens_kept;
  }
  // Or it tested nothing.
  EXPECT_GT(preemptions, num_schedules);
  EXPECT_GT(found, 10 * num_schedules);
  EXPECT_GT(kept, num_schedules / 2);
  EXPECT_GT(guessed, kept + num_schedules / 2) << "wrong guesses are part of it";
}

INSTANTIATE_TEST_SUITE_P(Isas, RandomScheduleTest,
                         ::testing::Values(kernels::Isa::kScalar, kernels::Isa::kAvx2,
                                           kernels::Isa::kAvx512),
                         [](const auto& param) {
                           return std::string(kernels::to_string(param.param));
                         });

}  // namespace
}  // namespace spud::engine
