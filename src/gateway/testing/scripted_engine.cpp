// SPDX-License-Identifier: Apache-2.0
#include "gateway/testing/scripted_engine.hpp"

namespace spud::gateway::testing {

using engine::FinishReason;
using engine::GenerationId;

ScriptedEngine::ScriptedEngine(ScriptedOptions options)
    : options_(std::move(options)), thread_([this] { loop(); }) {}

ScriptedEngine::~ScriptedEngine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<GenerationId> ScriptedEngine::submit(engine::GenerationRequest request,
                                            engine::GenerationSink sink) {
  const std::lock_guard lock(mutex_);
  if (draining_) return fail(ErrorCode::kUnavailable, "the engine is stopping");
  if (running_.size() >= options_.max_generations) {
    return fail(ErrorCode::kResourceExhausted, "the queue is full ({} generations)",
                options_.max_generations);
  }
  requests_.push_back(request);
  Generation generation{.request = std::move(request), .sink = std::move(sink)};
  Result<std::string> text =
      options_.script ? options_.script(generation.request) : Result<std::string>("Hello, world");
  if (text) {
    generation.text = *std::move(text);
  } else {
    generation.error = std::move(text).error();
  }
  for (const std::string& stop : generation.request.stop) {
    const std::size_t found = generation.text.find(stop);
    if (found == std::string::npos) continue;
    generation.text.resize(found);
    generation.stopped_by_string = true;
  }
  const GenerationId id = next_id_++;
  running_.emplace(id, std::move(generation));
  changed_.notify_all();
  return id;
}

void ScriptedEngine::cancel(GenerationId id) {
  const std::lock_guard lock(mutex_);
  if (running_.contains(id)) to_cancel_.insert(id);
  changed_.notify_all();
}

void ScriptedEngine::drain(concurrency::SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  changed_.wait_until(lock, deadline, [this] { return running_.empty(); });
  for (const auto& [id, generation] : running_) to_cancel_.insert(id);
  changed_.notify_all();
  changed_.wait(lock, [this] { return running_.empty(); });
}

engine::EngineStats ScriptedEngine::stats() const {
  const std::lock_guard lock(mutex_);
  return {.running = std::ssize(running_)};
}

void ScriptedEngine::step(int count) {
  const std::lock_guard lock(mutex_);
  steps_allowed_ += count;
  changed_.notify_all();
}

bool ScriptedEngine::wait_for(
    const std::function<bool(std::size_t running, std::size_t cancelled)>& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10),
                           [&] { return condition(running_.size(), num_cancelled_); });
}

std::vector<engine::GenerationRequest> ScriptedEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void ScriptedEngine::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    lock.unlock();  // a loop that never waits must still let others in
    std::this_thread::yield();
    lock.lock();
    changed_.wait(lock, [this] {
      const bool may_step = !options_.manual_steps || steps_allowed_ > 0;
      return stop_ || !to_cancel_.empty() || (may_step && !running_.empty());
    });
    if (stop_) return;
    for (const GenerationId id : std::exchange(to_cancel_, {})) {
      const auto it = running_.find(id);
      if (it == running_.end()) continue;
      finish(it->second, FinishReason::kCancelled);
      running_.erase(it);
      ++num_cancelled_;
    }
    if (options_.manual_steps && steps_allowed_ == 0) {
      changed_.notify_all();
      continue;
    }
    if (options_.manual_steps) --steps_allowed_;
    for (auto it = running_.begin(); it != running_.end();) {
      it = step_one(it->second) ? running_.erase(it) : std::next(it);
    }
    changed_.notify_all();
  }
}

bool ScriptedEngine::step_one(Generation& generation) {
  if (generation.error) {
    finish(generation, FinishReason::kError);
    return true;
  }
  const bool at_end = generation.position >= generation.text.size();
  if (at_end && generation.stopped_by_string) {
    finish(generation, FinishReason::kStop);
    return true;
  }
  engine::TokenEvent event{.token = kEndToken};
  if (!at_end) {
    const char c = generation.text[generation.position++];
    event.token = static_cast<unsigned char>(c);
    event.text = std::string(1, c);
  }
  ++generation.num_tokens;
  if (generation.request.top_logprobs >= 0) {
    event.logprob = -0.5F;
    for (int i = 0; i < generation.request.top_logprobs; ++i) {
      event.top.push_back({.token = event.token == kEndToken ? kEndToken : 'a' + i,
                           .logprob = -1.0F - static_cast<float>(i)});
    }
  }
  generation.sink.on_token(std::move(event));
  const bool full = generation.num_tokens >= generation.request.max_tokens;
  if (!at_end && !full) return false;
  finish(generation, at_end ? FinishReason::kStop : FinishReason::kLength);
  return true;
}

void ScriptedEngine::finish(Generation& generation, FinishReason reason) const {
  engine::FinishEvent event{.reason = reason,
                            .prompt_tokens = std::ssize(generation.request.prompt),
                            .completion_tokens = generation.num_tokens,
                            .error = generation.error};
  // As the real one refuses what would miss its deadline.
  const bool refused = event.error && event.error->code() == ErrorCode::kUnavailable;
  if (refused) event.retry_after = std::chrono::milliseconds(2500);
  generation.sink.on_finish(std::move(event));
}

}  // namespace spud::gateway::testing
