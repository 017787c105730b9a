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
// A policy that holds requests back is asked again no sooner and no later than this.
constexpr std::chrono::nanoseconds kShortestWait = std::chrono::microseconds(100);
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds(5);
constexpr std::size_t kMaxTenants = 4096;
constexpr std::chrono::nanoseconds kLongestRehearsal = std::chrono::milliseconds(150);
constexpr std::int32_t kMaxPriority = 1000;
// Beyond what any client sends; keeps the hold-back of a sequence small.
constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxStopBytes = 4096;
constexpr std::int32_t kMaxTopLogprobs = 20;

std::unexpected<Error> refuse(const char* param, std::string message) {
  return std::unexpected(Error(ErrorCode::kInvalidArgument, std::move(message)).with_param(param));
}

// What a step computes, before it does. Row i of a chunk at position p reads p + i + 1 positions.
scheduler::StepCost measure_rows(const std::vector<StepShare>& work) {
  scheduler::StepCost cost;
  for (const StepShare& item : work) {
    const std::int64_t n = item.num_tokens;
    const std::int64_t guesses = item.num_guesses();
    const std::int64_t rows = n + guesses;
    cost.decode_rows += guesses + (item.samples ? 1 : 0);
    cost.prefill_rows += item.samples ? n - 1 : n;
    cost.context_tokens += rows * item.sequence->computed + rows * (rows + 1) / 2;
  }
  return cost;
}

// Without guesses.
std::int64_t count_tokens(const std::vector<StepShare>& work) {
  std::int64_t count = 0;
  for (const StepShare& item : work) count += item.num_tokens;
  return count;
}

std::int64_t count_decoding(const std::vector<StepShare>& work) {
  return std::ranges::count_if(work,
                               [](const StepShare& item) { return item.sequence->decoding(); });
}

}  // namespace

EngineCore::EngineCore(EngineParts parts, const EngineCoreOptions& options,
                       std::unique_ptr<kvcache::KvCache> cache,
                       std::unique_ptr<scheduler::Scheduler> scheduler)
    : parts_(std::move(parts)),
      options_(options),
      pages_(std::move(cache), options.prefix_cache),
      scheduler_(std::move(scheduler)),
      runner_(parts_.model, pages_.cache(), options.num_threads, options.logit_rows),
      submissions_(static_cast<std::size_t>(options.max_queue + options.max_sequences)) {
  counters_.available_pages = pages_.num_available();
  thread_ = std::thread([this] { run(); });
}

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
  if (prompt > options_.context || request.max_tokens > options_.context - prompt) {
    return refuse("max_tokens",
                  fmt::format("the prompt has {} tokens and max_tokens is {}; together they may be "
                              "at most {}",
                              prompt, request.max_tokens, options_.context));
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
  if (request.priority < -kMaxPriority || request.priority > kMaxPriority) {
    return refuse("priority", fmt::format("priority is {}; it must be between {} and {}",
                                          request.priority, -kMaxPriority, kMaxPriority));
  }
  if (!(request.weight > 0 && request.weight <= 1e6)) {
    return refuse("weight", fmt::format("weight is {}; it must be more than 0 and at most 1000000",
                                        request.weight));
  }
  return validate(request.sampling, vocabulary);
}

Result<GenerationId> EngineCore::submit(GenerationRequest request, GenerationSink sink) {
  SPUD_TRY(check(request));
  const std::scoped_lock lock(mutex_);
  if (stopping_) {
    return fail(ErrorCode::kUnavailable, "the engine is stopping; no new generations are taken");
  }
  // Those that will find a free place at the next step do not count as waiting: an idle engine must
  // take a burst as large as its places and its queue together.
  const std::int64_t free_places = options_.max_sequences - counters_.running.load();
  if (counters_.waiting.load() >= options_.max_queue + free_places) {
    return fail(ErrorCode::kResourceExhausted,
                "{} generations are waiting already, the most there may be; try again later",
                options_.max_queue);
  }
  const GenerationId id = ++last_id_;
  auto flag = std::make_shared<std::atomic<bool>>(false);
  ++tenants_[request.tenant].waiting;
  auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(sink), flag,
                                             *parts_.tokenizer, parts_.clock->now());
  // Never full: it holds as many as may wait, free places included.
  SPUD_CHECK(submissions_.try_push(std::move(sequence)));
  flags_.emplace(id, std::move(flag));
  ++counters_.waiting;
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
  EngineStats stats{.running = counters_.running.load(),
                    .waiting = counters_.waiting.load(),
                    .kv_pages_total = pages_.num_total(),
                    .kv_pages_free = counters_.available_pages.load(),
                    .kv_pages_cached = counters_.cached_pages.load(),
                    .kv_page_bytes = pages_.page_bytes(),
                    .steps = counters_.steps.load(),
                    .preemptions = counters_.preemptions.load(),
                    .deadline_refusals = counters_.refusals.load(),
                    .prefix_tokens_looked_up = counters_.looked_up.load(),
                    .prefix_tokens_found = counters_.found.load(),
                    .prefix_pages_evicted = counters_.evicted_pages.load(),
                    .guessed_tokens = counters_.guesses.load(),
                    .guessed_tokens_kept = counters_.guesses_kept.load(),
                    .step_target = std::chrono::nanoseconds(counters_.step_target_ns.load())};
  const std::scoped_lock lock(mutex_);
  stats.tenants = tenants_;
  return stats;
}

void EngineCore::publish_stats() {
  counters_.available_pages = pages_.num_available();
  counters_.cached_pages = pages_.num_cached();
  counters_.evicted_pages = pages_.num_evicted();
  counters_.step_target_ns = scheduler_->stats().step_target.count();
}

// A few steps of known size, so that the first requests are planned with figures of this machine
// and model. Some hundredths of a second; cut short where a step is slow.
void EngineCore::learn_costs() {
  constexpr std::pair<std::int64_t, std::int64_t> kSteps[] = {{1, 0},  {1, 0}, {4, 0},
                                                              {0, 32}, {1, 0}, {0, 64}};
  const concurrency::SteadyTime begin = parts_.clock->now();
  static_cast<void>(runner_.rehearse(1, 0));  // touches the weights for the first time
  for (const auto& [streams, rows] : kSteps) {
    const concurrency::SteadyTime start = parts_.clock->now();
    if (start - begin > kLongestRehearsal || !runner_.rehearse(streams, rows)) return;
    scheduler_->observe({.decode_rows = streams,
                         .prefill_rows = rows,
                         .context_tokens = streams + rows * (rows + 1) / 2,
                         .duration = parts_.clock->now() - start});
  }
}

void EngineCore::run() {
  learn_costs();
  while (wait_for_work()) {
    drop_cancelled();
    step();
    sweep_finished();
  }
}

// False when the engine is to end. Does not wait while there is something to do now.
bool EngineCore::wait_for_work() {
  const bool idle = waiting_.empty() && running_.empty();
  if (idle || wake_at_) {
    // A policy that waits still sees cancellations soon.
    const auto until = std::chrono::steady_clock::now() +
                       (idle ? std::chrono::nanoseconds(kIdleWait)
                             : std::clamp<std::chrono::nanoseconds>(*wake_at_ - parts_.clock->now(),
                                                                    kShortestWait, kLongestWait));
    auto sequence = submissions_.pop_until(until);
    if (sequence) {
      add_waiting(std::move(*sequence));
    } else if (idle && submissions_.closed()) {
      return false;
    }
  }
  take_submissions();
  return true;
}

void EngineCore::take_submissions() {
  while (auto sequence = submissions_.try_pop()) add_waiting(std::move(*sequence));
}

void EngineCore::add_waiting(SequencePtr sequence) {
  Sequence& added = *sequence;
  by_id_.emplace(added.id(), &added);
  const std::string& tenant = added.request().tenant;
  auto number = tenant_numbers_.find(tenant);
  if (number == tenant_numbers_.end()) {
    // Names beyond the limit share numbers: their fairness is that of a group.
    const auto next = static_cast<std::uint32_t>(
        tenant_numbers_.size() < kMaxTenants ? tenant_numbers_.size()
                                             : std::hash<std::string>{}(tenant) % kMaxTenants);
    if (tenant_numbers_.size() < kMaxTenants) tenant_numbers_.emplace(tenant, next);
    added.tenant = next;
  } else {
    added.tenant = number->second;
  }
  waiting_.push_back(std::move(sequence));
}

void EngineCore::drop_cancelled() {
  for (const SequencePtr& sequence : running_) {
    if (sequence->cancelled()) finish(*sequence, {.reason = FinishReason::kCancelled});
  }
  for (const SequencePtr& sequence : waiting_) {
    if (sequence->cancelled()) finish(*sequence, {.reason = FinishReason::kCancelled});
  }
  sweep_finished();
}

void EngineCore::step() {
  wake_at_.reset();
  if (waiting_.empty() && running_.empty()) return;
  const concurrency::Clock& clock = *parts_.clock;
  const concurrency::SteadyTime begin = clock.now();
  const scheduler::StepPlan plan = make_plan();
  apply(plan);
  std::vector<StepShare> work = collect_work(plan);
  publish_stats();
  if (work.empty()) {
    wake_at_ = plan.wake_at.value_or(begin);
    return;
  }
  scheduler::StepCost cost = measure_rows(work);
  const std::int64_t num_decoding = count_decoding(work);
  const std::int64_t num_tokens = count_tokens(work);  // before scored prompts leave it
  const concurrency::SteadyTime planned = clock.now();
  runner_.run(work);
  const concurrency::SteadyTime computed = clock.now();
  for (const StepShare& item : work) pages_.publish(*item.sequence);
  hand_out(work);
  ++counters_.steps;
  const concurrency::SteadyTime end = clock.now();
  cost.duration = end - begin;
  scheduler_->observe(cost);
  if (!parts_.on_step) return;
  parts_.on_step({.duration = end - begin,
                  .planning = planned - begin,
                  .computing = computed - planned,
                  .delivering = end - computed,
                  .prompt_tokens = num_tokens - num_decoding,
                  .decode_tokens = num_decoding,
                  .context_tokens = cost.context_tokens});
}

void EngineCore::hand_out(std::vector<StepShare>& work) {
  for (StepShare& item : work) {
    if (!item.samples) continue;
    if (item.sequence->scores_prompt()) item.sequence->hand_out_prompt();
    const std::int64_t kept = accept(item);
    if (item.speculative.empty()) continue;
    item.sequence->draft.report(item.num_guesses(), kept);
    counters_.guesses += item.num_guesses();
    counters_.guesses_kept += kept;
  }
}

// The sampled token, and as many guesses as are what it and its followers sample: their rows are
// then those that would have been computed next. Returns how many guesses were kept.
std::int64_t EngineCore::accept(StepShare& share) {
  Sequence& sequence = *share.sequence;
  std::int64_t kept = 0;
  for (SampledToken sampled = std::move(share.sampled);;) {
    const TokenId token = sampled.token;
    if (auto ending = sequence.accept(std::move(sampled))) {
      finish(sequence, std::move(*ending));
      return kept;
    }
    const auto next = static_cast<std::size_t>(kept + 1);
    if (next >= share.speculative.size() || share.speculative[next] != token ||
        sequence.cancelled()) {
      return kept;
    }
    ++kept;
    ++sequence.computed;
    sampled = runner_.sample_row(share, next);
  }
}

void EngineCore::finish(Sequence& sequence, Ending ending) {
  if (sequence.finished) return;
  sequence.finished = true;
  pages_.release(sequence);
  publish_stats();
  sequence.finish(std::move(ending), parts_.clock->now());
  by_id_.erase(sequence.id());
  const std::scoped_lock lock(mutex_);
  --(sequence.running ? counters_.running : counters_.waiting);
  const auto tenant = tenants_.find(sequence.request().tenant);
  --(sequence.running ? tenant->second.running : tenant->second.waiting);
  if (tenant->second.running + tenant->second.waiting == 0) tenants_.erase(tenant);
  flags_.erase(sequence.id());
  if (flags_.empty()) all_done_.notify_all();
}

void EngineCore::sweep_finished() {
  const auto finished = [](const SequencePtr& s) { return s->finished; };
  std::erase_if(running_, finished);
  std::erase_if(waiting_, finished);
}

}  // namespace spud::engine
