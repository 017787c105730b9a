// SPDX-License-Identifier: Apache-2.0
// What the engine's tests share: a sink that remembers, and engines over the tiny model. For tests
// only.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/model_engine.hpp"
#include "formats/model_file.hpp"
#include "model/testing/tiny_model.hpp"

namespace spud::engine {

// What a generation's sink saw.
class Recorder {
 public:
  GenerationSink sink() {
    return {.on_token =
                [this](TokenEvent&& event) {
                  const std::scoped_lock lock(mutex_);
                  tokens_.push_back(std::move(event));
                  changed_.notify_all();
                },
            .on_finish =
                [this](FinishEvent&& event) {
                  const std::scoped_lock lock(mutex_);
                  finish_ = std::move(event);
                  changed_.notify_all();
                },
            .on_prompt =
                [this](std::vector<TokenEvent>&& events) {
                  const std::scoped_lock lock(mutex_);
                  prompt_ = std::move(events);
                }};
  }
  const FinishEvent& wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finish_.has_value(); });
    return *finish_;
  }
  void wait_for_tokens(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tokens_.size() >= count || finish_.has_value(); });
  }
  // Only after wait().
  const std::vector<TokenEvent>& tokens() const { return tokens_; }
  const std::vector<TokenEvent>& prompt() const { return prompt_; }
  std::string text() const {
    std::string text;
    for (const TokenEvent& event : tokens_) text += event.text;
    return text + finish_->text;
  }
  std::vector<TokenId> ids() const {
    std::vector<TokenId> ids;
    for (const TokenEvent& event : tokens_) ids.push_back(event.token);
    return ids;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TokenEvent> tokens_;
  std::vector<TokenEvent> prompt_;
  std::optional<FinishEvent> finish_;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    const model::testing::TinyModelFile file;
    auto opened = formats::ModelFile::open(file.path());
    concurrency::ThreadPool pool(1);
    model_ = *model::Model::load(*opened, pool);
    tokenizer_ = *tokenizer::Tokenizer::create((*opened)->metadata());
  }
  std::unique_ptr<Engine> make(EngineOptions options = {}) {
    if (options.threads == 0) options.threads = 2;
    auto engine = make_engine({.model = model_,
                               .tokenizer = tokenizer_,
                               .clock = &clock_,
                               .on_step = [this](const StepReport& report) { on_step(report); }},
                              options);
    EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message());
    return std::move(*engine);
  }
  virtual void on_step(const StepReport&) { ++steps_; }
  std::vector<TokenId> encode(std::string_view text) const { return *tokenizer_->encode(text, {}); }
  // Greedy, never ending by itself.
  GenerationRequest request(std::string_view prompt, std::int64_t max_tokens) const {
    return {.prompt = encode(prompt),
            .sampling = {.temperature = 0},
            .max_tokens = max_tokens,
            .ignore_eos = true};
  }
  // The tokens of one request on an otherwise idle engine.
  std::vector<TokenId> alone(const GenerationRequest& request) {
    auto engine = make({.threads = 1});
    Recorder recorder;
    EXPECT_TRUE(engine->submit(request, recorder.sink()).has_value());
    recorder.wait();
    return recorder.ids();
  }

  std::shared_ptr<const model::Model> model_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  concurrency::FakeClock clock_;
  std::atomic<int> steps_{0};
};

}  // namespace spud::engine
