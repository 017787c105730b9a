// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace spud::engine {
namespace {

// An idle engine only waits for submissions; the bound is a formality.
constexpr std::chrono::hours kIdleWait{1};
// How often drain() looks at the injected clock.
constexpr std::chrono::milliseconds kDrainPoll{5};
// Beyond what any client sends; keeps the hold-back of a sequence small.
constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxStopBytes = 4096;
constexpr std::int32_t kMaxTopLogprobs = 20;

std::unexpected<Error> refuse(const char* param, std::string message) {
  return std::unexpected(Error(ErrorCode::kInvalidArgument, std::move(message)).with_param(param));
}

}  // namespace

EngineCore::EngineCore(EngineParts parts, const EngineCoreLimits& limits,
                       std::unique_ptr<kvcache::KvCache> cache,
                       std::unique_ptr<scheduler::Scheduler> scheduler, int num_threads)
    : parts_(std::move(parts)),
      limits_(limits),
      cache_(std::move(cache)),
      scheduler_(std::move(scheduler)),
      runner_(parts_.model, *cache_, num_threads),
      submissions_(static_cast<std::size_t>(limits.max_queue)),
      free_pages_(static_cast<std::int64_t>(cache_->num_pages())),
      thread_([this] { run(); }) {}

EngineCore::~EngineCore() {
  drain(parts_.clock->now());
  submissions_.close();
  thread_.join();
}

Result<void> EngineCore::check(const GenerationRequest& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t vocabulary = parts_.model->hyper_parameters().vocabulary;
  if (prompt == 0) return refuse("prompt", "the prompt is empty; it needs at least one token");
  if (request.max_tokens < 1) {
    return refuse("max_tokens",
                  fmt::format("max_tokens is {}; it must be at least 1", request.max_tokens));
  }
  if (prompt > limits_.context || request.max_tokens > limits_.context - prompt) {
    return refuse("max_tokens",
                  fmt::format("the prompt has {} tokens and max_tokens is {}; together they may be "
                              "at most {}",
                              prompt, request.max_tokens, limits_.context));
  }
  for (const TokenId token : request.prompt) {
    if (token >= 0 && token < vocabulary) continue;
    return refuse("prompt",
                  fmt::format("token {} is not in the vocabulary of {}", token, vocabulary));
  }
  std::size_t stop_bytes = 0;
  for (const std::string& stop : request.stop) stop_bytes += stop.size();
  if (request.stop.size() > kMaxStops || stop_bytes > kMaxStopBytes) {
    return refuse("stop", fmt::format("{} stop strings of {} bytes; at most {} of {} are possible",
                                      request.stop.size(), stop_bytes, kMaxStops, kMaxStopBytes));
  }
  if (request.top_logprobs > kMaxTopLogprobs) {
    return refuse("top_logprobs", fmt::format("top_logprobs is {}; it may be at most {}",
                                              request.top_logprobs, kMaxTopLogprobs));
  }
  return validate(request.sampling, vocabulary);
}

Result<GenerationId> EngineCore::submit(GenerationRequest request, GenerationSink sink) {
  SPUD_TRY(check(request));
  const std::scoped_lock lock(mutex_);
  if (stopping_) {
    return fail(ErrorCode::kUnavailable, "the engine is stopping; no new generations are taken");
  }
  if (num_waiting_.load() >= limits_.max_queue) {
    return fail(ErrorCode::kResourceExhausted,
                "{} generations are waiting already, the most there may be; try again later",
                limits_.max_queue);
  }
  const GenerationId id = ++last_id_;
  auto flag = std::make_shared<std::atomic<bool>>(false);
  auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(sink), flag,
                                             *parts_.tokenizer, parts_.clock->now());
  // Never full: it holds as many as may wait.
  SPUD_CHECK(submissions_.try_push(std::move(sequence)));
  flags_.emplace(id, std::move(flag));
  ++num_waiting_;
  return id;
}

void EngineCore::cancel(GenerationId id) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = flags_.find(id); found != flags_.end()) found->second->store(true);
}

void EngineCore::drain(concurrency::SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  while (!flags_.empty()) {
    if (parts_.clock->now() >= deadline) {
      for (const auto& [id, flag] : flags_) flag->store(true);
      all_done_.wait(lock, [this] { return flags_.empty(); });
      return;
    }
    all_done_.wait_for(lock, kDrainPoll);
  }
}

EngineStats EngineCore::stats() const {
  return {.running = num_running_.load(),
          .waiting = num_waiting_.load(),
          .kv_pages_total = static_cast<std::int64_t>(cache_->num_pages()),
          .kv_pages_free = free_pages_.load(),
          .steps = num_steps_.load()};
}

void EngineCore::run() {
  while (wait_for_work()) {
    drop_cancelled();
    step();
    sweep_finished();
  }
}

// False when the engine is to end. Does not wait while anything is there to do.
bool EngineCore::wait_for_work() {
  if (waiting_.empty() && running_.empty()) {
    auto sequence = submissions_.pop_until(std::chrono::steady_clock::now() + kIdleWait);
    if (sequence) {
      waiting_.push_back(std::move(*sequence));
    } else if (submissions_.closed()) {
      return false;
    }
  }
  take_submissions();
  return true;
}

void EngineCore::take_submissions() {
  while (auto sequence = submissions_.try_pop()) waiting_.push_back(std::move(*sequence));
}

void EngineCore::drop_cancelled() {
  for (const SequencePtr& sequence : running_) {
    if (sequence->cancelled()) finish(*sequence, {FinishReason::kCancelled, std::nullopt});
  }
  for (const SequencePtr& sequence : waiting_) {
    if (sequence->cancelled()) finish(*sequence, {FinishReason::kCancelled, std::nullopt});
  }
  sweep_finished();
}

void EngineCore::step() {
  if (waiting_.empty() && running_.empty()) return;
  const concurrency::SteadyTime begin = parts_.clock->now();
  const scheduler::StepPlan plan = make_plan();
  apply(plan);
  if (!plan.has_rows()) return;
  std::vector<StepWork> work = collect_work(plan);
  runner_.run(work);
  hand_out(work);
  ++num_steps_;
  const auto decode_rows = static_cast<std::int64_t>(plan.decode.size());
  const StepReport report{.duration = parts_.clock->now() - begin,
                          .prompt_tokens = plan.num_rows() - decode_rows,
                          .decode_tokens = decode_rows};
  scheduler_->observe({.decode_rows = decode_rows,
                       .prefill_rows = report.prompt_tokens,
                       .duration = report.duration});
  if (parts_.on_step) parts_.on_step(report);
}

scheduler::StepPlan EngineCore::make_plan() {
  std::vector<scheduler::WaitingView> waiting;
  std::vector<scheduler::RunningView> running;
  waiting.reserve(waiting_.size());
  running.reserve(running_.size());
  for (const SequencePtr& s : waiting_) {
    const auto worst = static_cast<std::size_t>(s->worst_case_tokens());
    waiting.push_back({.id = scheduler::SequenceId(s->id()),
                       .worst_case_pages = static_cast<std::int64_t>(kvcache::pages_for(worst)),
                       .prompt_tokens = s->prompt_tokens(),
                       .deadline = s->request().deadline});
  }
  for (const SequencePtr& s : running_) {
    running.push_back({.id = scheduler::SequenceId(s->id()),
                       .prompt_tokens = s->prompt_tokens(),
                       .prefilled = s->prefilled,
                       .deadline = s->request().deadline});
  }
  return scheduler_->plan({.waiting = waiting,
                           .running = running,
                           .free_pages = static_cast<std::int64_t>(cache_->free_pages()),
                           .now = parts_.clock->now()});
}

// Ends what expired and moves what was admitted from waiting to running, with its pages.
void EngineCore::apply(const scheduler::StepPlan& plan) {
  for (const scheduler::SequenceId id : plan.expire) {
    const auto has_id = [&](const SequencePtr& s) { return s->id() == id.value; };
    auto at = std::ranges::find_if(running_, has_id);
    Sequence* sequence =
        at != running_.end() ? at->get() : std::ranges::find_if(waiting_, has_id)->get();
    finish(*sequence,
           {FinishReason::kError, Error(ErrorCode::kDeadlineExceeded,
                                        "the request's deadline passed before it was complete")});
  }
  sweep_finished();
  for (const scheduler::SequenceId id : plan.admit) {
    const auto at =
        std::ranges::find_if(waiting_, [&](const SequencePtr& s) { return s->id() == id.value; });
    SPUD_CHECK(at != waiting_.end());
    const auto tokens = static_cast<std::size_t>((*at)->worst_case_tokens());
    SPUD_CHECK(cache_->grow((*at)->pages, tokens));  // the plan counted them
    (*at)->started = parts_.clock->now();
    running_.push_back(std::move(*at));
    waiting_.erase(at);
    --num_waiting_;
    ++num_running_;
  }
  free_pages_ = static_cast<std::int64_t>(cache_->free_pages());
}

std::vector<StepWork> EngineCore::collect_work(const scheduler::StepPlan& plan) {
  std::vector<StepWork> work;
  work.reserve(plan.decode.size() + plan.prefill.size());
  for (const scheduler::SequenceId id : plan.decode) {
    work.push_back({.sequence = find_running(id.value), .samples = true});
  }
  for (const scheduler::PrefillChunk& chunk : plan.prefill) {
    work.push_back({.sequence = find_running(chunk.id.value),
                    .prefill_tokens = chunk.num_tokens,
                    .samples = chunk.last});
  }
  return work;
}

void EngineCore::hand_out(std::vector<StepWork>& work) {
  for (StepWork& item : work) {
    if (!item.samples) continue;
    Sequence& sequence = *item.sequence;
    const bool first = sequence.completion_tokens() == 0;
    if (first && sequence.request().echo_prompt_logprobs) sequence.hand_out_prompt();
    if (auto ending = sequence.accept(std::move(item.sampled))) {
      finish(sequence, std::move(*ending));
    }
  }
}

void EngineCore::finish(Sequence& sequence, Ending ending) {
  if (sequence.finished) return;
  sequence.finished = true;
  --(sequence.started ? num_running_ : num_waiting_);
  cache_->release(sequence.pages);
  free_pages_ = static_cast<std::int64_t>(cache_->free_pages());
  sequence.finish(std::move(ending), parts_.clock->now());
  const std::scoped_lock lock(mutex_);
  flags_.erase(sequence.id());
  if (flags_.empty()) all_done_.notify_all();
}

void EngineCore::sweep_finished() {
  const auto finished = [](const SequencePtr& s) { return s->finished; };
  std::erase_if(running_, finished);
  std::erase_if(waiting_, finished);
}

Sequence* EngineCore::find_running(GenerationId id) const {
  const auto at =
      std::ranges::find_if(running_, [&](const SequencePtr& s) { return s->id() == id; });
  SPUD_CHECK(at != running_.end());
  return at->get();
}

}  // namespace spud::engine
