// SPDX-License-Identifier: Apache-2.0
// An engine for tests: each generation says what a script tells it, one byte token a step, from a
// thread of its own like the real one. Steps run by themselves or one by one on demand, so that a
// test can stand still in the middle of an answer.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "engine/engine.hpp"
#include "gateway/testing/byte_tokenizer.hpp"

namespace spud::gateway::testing {

struct ScriptedOptions {
  std::int64_t context_length = 256;
  std::size_t max_generations = 64;  // more are refused: the queue is full
  bool manual_steps = false;
  // The text a request is answered with; the end token follows. Stop strings are honoured. A script
  // that returns an Error makes the generation fail at its first step.
  std::function<Result<std::string>(const engine::GenerationRequest&)> script;
};

// Thread-safe.
class ScriptedEngine final : public engine::Engine {
 public:
  explicit ScriptedEngine(ScriptedOptions options);
  ~ScriptedEngine() override;

  Result<engine::GenerationId> submit(engine::GenerationRequest request,
                                      engine::GenerationSink sink) override;
  void cancel(engine::GenerationId id) override;
  void drain(concurrency::SteadyTime deadline) override;
  const tokenizer::Tokenizer& tokenizer() const noexcept override { return tokenizer_; }
  std::int64_t context_length() const noexcept override { return options_.context_length; }
  engine::EngineStats stats() const override;

  // Manual steps: runs `count` more.
  void step(int count = 1);
  // Waits until the condition holds for (running, cancelled); gives up after 10 s.
  bool wait_for(const std::function<bool(std::size_t running, std::size_t cancelled)>& condition);
  std::vector<engine::GenerationRequest> requests() const;  // all submitted so far

 private:
  struct Generation {
    engine::GenerationRequest request;
    engine::GenerationSink sink;
    std::string text;
    std::optional<Error> error;
    bool stopped_by_string = false;
    std::size_t position = 0;
    std::int64_t num_tokens = 0;
  };

  void loop();
  bool step_one(Generation& generation);  // true: finished
  void finish(Generation& generation, engine::FinishReason reason) const;

  const ScriptedOptions options_;
  const ByteTokenizer tokenizer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<engine::GenerationId, Generation> running_;
  std::set<engine::GenerationId> to_cancel_;
  std::vector<engine::GenerationRequest> requests_;
  engine::GenerationId next_id_ = 1;
  std::size_t num_cancelled_ = 0;
  int steps_allowed_ = 0;
  bool draining_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace spud::gateway::testing
