// SPDX-License-Identifier: Apache-2.0
// The life of a generation request after its prompt is tokens: check the context, submit every
// choice, watch the client, then either gather all events into one answer or write each as it
// comes. Status and headers of a stream go out with its first event, so that a refusal before that
// is still a proper HTTP error; afterwards an error is an event and the stream ends without [DONE].
#include "gateway/internal/run_generation.hpp"

#include <bit>

#include "gateway/generation_set.hpp"
#include "gateway/internal/answer.hpp"
#include "gateway/internal/make_requests.hpp"
#include "http/sse.hpp"

namespace spud::gateway::internal {
namespace asio = boost::asio;

namespace {

using concurrency::SteadyTime;
using engine::FinishEvent;
using engine::FinishReason;
using engine::TokenEvent;

// With echo and max_tokens 0 only the prompt is wanted; the engine makes one token, we drop it.
bool only_scores(const Job& job) { return job.params.max_tokens == 0; }

// One request's work in flight. Server thread only; lives on run_generation's frame.
class Run {
 public:
  Run(State& state, http::Exchange& exchange, const RequestContext& context, Job job)
      : state_(state),
        exchange_(exchange),
        context_(context),
        job_(std::move(job)),
        set_(*state.parts.host.engine, exchange.executor(), state.options.max_buffered_bytes) {
    const ModelCard& card = state.parts.host.card;
    const bool chat = job_.surface == api::Surface::kChat;
    head_ = {.surface = job_.surface,
             .id = fmt::format("{}-{:016x}{:016x}", chat ? "chatcmpl" : "cmpl", state.random(),
                               state.random()),
             .created = std::chrono::duration_cast<std::chrono::seconds>(
                            state.parts.clock->system_now().time_since_epoch())
                            .count(),
             .model = card.id,
             .system_fingerprint = card.fingerprint,
             .usage_in_stream = job_.params.include_usage};
  }

  asio::awaitable<void> run();

 private:
  asio::awaitable<void> collect();
  asio::awaitable<void> stream();
  // False: the stream is over.
  asio::awaitable<bool> write_stream(std::string text);
  asio::awaitable<void> end_stream();
  asio::awaitable<void> fail_request(Error error);

  // Into `choice` goes what the event adds; returns the error that ends the request, if any.
  std::optional<Error> take(GenerationEvent& event, api::Choice& choice);
  void take_prompt(std::size_t choice_idx, const std::vector<TokenEvent>& events,
                   api::Choice& choice);
  void take_token(std::size_t choice_idx, TokenEvent& event, api::Choice& choice);
  std::optional<Error> take_finish(std::size_t choice_idx, FinishEvent& event, api::Choice& choice);
  api::Choice new_choice(std::size_t choice_idx) const;
  void start_log(const std::vector<engine::GenerationRequest>& requests);
  std::string stream_text(GenerationEvent& event, std::optional<Error>& error);
  api::Usage usage() const;
  SteadyTime heartbeat_time() const {
    return std::chrono::steady_clock::now() + state_.options.heartbeat;
  }
  bool deadline_passed() const {
    const auto deadline = deadline_of(state_, context_, job_);
    return deadline && state_.parts.clock->now() >= *deadline;
  }

  State& state_;
  http::Exchange& exchange_;
  const RequestContext& context_;
  Job job_;
  api::AnswerHead head_;
  GenerationSet set_;
  std::vector<ChoiceProgress> progress_;
  std::vector<LoggedGeneration> logged_;  // by choice; empty without a request log
  std::vector<GenerationEvent> events_;
  bool saw_token_ = false;
  std::chrono::nanoseconds retry_after_{0};
};

asio::awaitable<void> Run::run() {
  auto requests = make_requests(state_, context_, job_);
  if (!requests) {
    co_await answer_error(state_, exchange_, context_, std::move(requests).error());
    co_return;
  }
  progress_.resize(requests->size());
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    progress_[i].prompt_idx = i / static_cast<std::size_t>(job_.params.n);
  }
  if (state_.parts.request_log != nullptr) start_log(*requests);
  const Result<void> submitted = set_.submit(*std::move(requests));
  if (!submitted) {
    co_await answer_error(state_, exchange_, context_, api::to_api_error(submitted.error()));
    co_return;
  }
  exchange_.watch_client([queue = set_.queue()] { queue->interrupt(); });
  // Called even while a write is stuck, which is the usual reason for an overflow.
  set_.queue()->set_overflow_callback([this] {
    set_.cancel();
    exchange_.abort();
  });
  if (job_.params.stream) {
    co_await stream();
  } else {
    co_await collect();
  }
  if (!set_.all_finished()) state_.parts.metrics->cancelled.add();
  state_.parts.metrics->request_seconds.observe(
      std::chrono::duration<double>(state_.parts.clock->now() - context_.started).count());
}

void Run::start_log(const std::vector<engine::GenerationRequest>& requests) {
  for (const engine::GenerationRequest& request : requests) {
    logged_.push_back({.id = request.request_id,
                       .prompt = request.prompt,
                       .sampling = request.sampling,
                       .max_tokens = request.max_tokens,
                       .stop = request.stop,
                       .ignore_eos = request.ignore_eos});
  }
}

api::Choice Run::new_choice(std::size_t choice_idx) const {
  api::Choice choice{.index = static_cast<std::int64_t>(choice_idx)};
  if (job_.params.top_logprobs >= 0) choice.tokens.emplace();
  choice.first_text_offset = progress_[choice_idx].num_characters;
  return choice;
}

std::optional<Error> Run::take(GenerationEvent& event, api::Choice& choice) {
  if (auto* token = std::get_if<TokenEvent>(&event.event)) {
    take_token(event.choice, *token, choice);
    return std::nullopt;
  }
  if (auto* finish = std::get_if<FinishEvent>(&event.event)) {
    return take_finish(event.choice, *finish, choice);
  }
  take_prompt(event.choice, std::get<std::vector<TokenEvent>>(event.event), choice);
  return std::nullopt;
}

void Run::take_prompt(std::size_t choice_idx, const std::vector<TokenEvent>& events,
                      api::Choice& choice) {
  if (!choice.tokens) return;
  const tokenizer::Tokenizer& tokenizer = state_.parts.host.engine->tokenizer();
  for (std::size_t i = 0; i < events.size(); ++i) {
    choice.tokens->push_back(make_token_info(tokenizer, events[i], /*has_logprob=*/i > 0));
    progress_[choice_idx].num_characters +=
        api::count_characters(choice.tokens->back().chosen.text);
  }
}

void Run::take_token(std::size_t choice_idx, TokenEvent& event, api::Choice& choice) {
  ChoiceProgress& progress = progress_[choice_idx];
  const SteadyTime now = state_.parts.clock->now();
  if (!std::exchange(saw_token_, true)) {
    state_.parts.metrics->time_to_first_token_seconds.observe(
        std::chrono::duration<double>(now - context_.started).count());
  }
  if (progress.num_tokens++ == 0) progress.first_token = now;
  progress.last_token = now;
  if (!logged_.empty()) {
    logged_[choice_idx].tokens.push_back(event.token);
    logged_[choice_idx].logprob_bits.push_back(std::bit_cast<std::uint32_t>(event.logprob));
  }
  if (only_scores(job_)) return;
  choice.text += event.text;
  const tokenizer::Tokenizer& tokenizer = state_.parts.host.engine->tokenizer();
  // The token that ends the generation is no part of the text, so its log-prob is not listed.
  const bool ends = !job_.params.ignore_eos && tokenizer.is_end_of_generation(event.token);
  if (!choice.tokens || ends) return;
  choice.tokens->push_back(make_token_info(tokenizer, event));
  progress.num_characters += api::count_characters(choice.tokens->back().chosen.text);
}

std::optional<Error> Run::take_finish(std::size_t choice_idx, FinishEvent& event,
                                      api::Choice& choice) {
  set_.mark_finished(choice_idx);
  ChoiceProgress& progress = progress_[choice_idx];
  progress.prompt_tokens = event.prompt_tokens;
  progress.cached_tokens = event.cached_tokens;
  progress.completion_tokens = only_scores(job_) ? 0 : event.completion_tokens;
  const ServerMetrics& metrics = *state_.parts.metrics;
  metrics.prompt_tokens.add(static_cast<double>(event.prompt_tokens));
  metrics.generated_tokens.add(static_cast<double>(event.completion_tokens));
  metrics.queue_seconds.observe(std::chrono::duration<double>(event.queued).count());
  if (progress.num_tokens > 1) {
    const std::chrono::duration<double> between = progress.last_token - progress.first_token;
    metrics.time_per_output_token_seconds.observe(between.count() /
                                                  static_cast<double>(progress.num_tokens - 1));
  }
  if (event.reason == FinishReason::kCancelled || event.reason == FinishReason::kError) {
    retry_after_ = event.retry_after;
    return finish_error(event, deadline_passed());
  }
  if (!logged_.empty()) state_.parts.request_log->write(logged_[choice_idx]);
  if (!only_scores(job_)) choice.text += event.text;
  choice.finish_reason = only_scores(job_) ? "length" : finish_name(event.reason);
  return std::nullopt;
}

api::Usage Run::usage() const {
  api::Usage usage;
  const auto n = static_cast<std::size_t>(job_.params.n);
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    // A prompt counts once, however many choices were made from it.
    if (i % n == 0) {
      usage.prompt_tokens += progress_[i].prompt_tokens;
      usage.cached_tokens += progress_[i].cached_tokens;
    }
    usage.completion_tokens += progress_[i].completion_tokens;
  }
  return usage;
}

asio::awaitable<void> Run::fail_request(Error error) {
  set_.cancel();
  if (!exchange_.started()) {
    api::ApiError refusal = api::to_api_error(error);
    if (retry_after_.count() > 0) {
      const auto wait = std::chrono::ceil<std::chrono::seconds>(retry_after_);
      refusal.retry_after_s = static_cast<int>(std::min<std::int64_t>(wait.count(), 3600));
    }
    co_await answer_error(state_, exchange_, context_, std::move(refusal));
    co_return;
  }
  exchange_.close_after();
  const bool written =
      co_await write_stream(http::sse_data(api::to_json(api::to_api_error(error))));
  if (written) co_await end_stream();
}

asio::awaitable<void> Run::collect() {
  std::vector<api::Choice> choices;
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    choices.push_back(new_choice(i));
    if (job_.echo) choices.back().text = job_.prompts[progress_[i].prompt_idx].echo_text;
  }
  while (!set_.all_finished()) {
    const WaitResult waited = co_await set_.queue()->wait(events_, heartbeat_time());
    if (waited == WaitResult::kInterrupted || waited == WaitResult::kOverflow) co_return;
    for (GenerationEvent& event : events_) {
      std::optional<Error> error = take(event, choices[event.choice]);
      if (!error) continue;
      co_await fail_request(*std::move(error));
      co_return;
    }
  }
  co_await answer_json(state_, exchange_, context_, api::make_answer(head_, choices, usage()));
}

asio::awaitable<bool> Run::write_stream(std::string text) {
  if (!exchange_.started()) {
    http::Response head{.content_type = "text/event-stream; charset=utf-8"};
    add_common_headers(state_, context_, head.headers);
    head.headers.add("Cache-Control", "no-cache");
    head.headers.add("X-Accel-Buffering", "no");  // nginx would hold events back
    const Result<void> begun = co_await exchange_.begin_stream(std::move(head));
    if (!begun) co_return false;
  }
  const Result<void> written = co_await exchange_.write(std::move(text));
  co_return written.has_value();
}

asio::awaitable<void> Run::end_stream() {
  const Result<void> finished = co_await exchange_.finish_stream();
  static_cast<void>(finished);  // the client is gone: nothing left to do
}

// The chunks that one event makes; "" when all of it is held back.
std::string Run::stream_text(GenerationEvent& event, std::optional<Error>& error) {
  std::string out;
  ChoiceProgress& progress = progress_[event.choice];
  api::Choice choice = new_choice(event.choice);
  if (!std::exchange(progress.role_sent, true)) {
    if (head_.surface == api::Surface::kChat) {
      out += http::sse_data(api::make_role_chunk(head_, choice.index));
    }
    if (job_.echo) choice.text = job_.prompts[progress.prompt_idx].echo_text;
  }
  error = take(event, choice);
  if (error) return out;
  const std::string finish_reason = std::exchange(choice.finish_reason, "");
  if (!choice.text.empty() || (choice.tokens && !choice.tokens->empty())) {
    out += http::sse_data(api::make_chunk(head_, choice));
  }
  if (!finish_reason.empty()) {
    const api::Choice last{.index = choice.index, .finish_reason = finish_reason};
    out += http::sse_data(api::make_chunk(head_, last));
  }
  return out;
}

asio::awaitable<void> Run::stream() {
  while (!set_.all_finished()) {
    const WaitResult waited = co_await set_.queue()->wait(events_, heartbeat_time());
    if (waited == WaitResult::kInterrupted || waited == WaitResult::kOverflow) co_return;
    std::string text;
    if (waited == WaitResult::kTimeout) text = http::sse_comment("keep-alive");
    for (GenerationEvent& event : events_) {
      std::optional<Error> error;
      std::string piece = stream_text(event, error);
      if (!error) {
        text += piece;
        continue;
      }
      // What was certain before the failure still reaches the client.
      const bool has_text = !text.empty();
      bool written = true;
      if (has_text) written = co_await write_stream(std::move(text));
      if (written) co_await fail_request(*std::move(error));
      co_return;
    }
    if (text.empty()) continue;
    const bool written = co_await write_stream(std::move(text));
    if (!written) co_return;
  }
  std::string last;
  if (job_.params.include_usage) last = http::sse_data(api::make_usage_chunk(head_, usage()));
  last += http::sse_data("[DONE]");
  const bool written = co_await write_stream(std::move(last));
  if (written) co_await end_stream();
}

}  // namespace

asio::awaitable<void> run_generation(State& state, http::Exchange& exchange,
                                     const RequestContext& context, Job job) {
  Run run(state, exchange, context, std::move(job));
  co_await run.run();
}

std::optional<api::ApiError> refuse_early(const State& state, const std::string& model) {
  if (!model.empty() && model != state.parts.host.card.id) return api::model_not_found(model);
  if (state.draining) {
    return api::error_for_status(503, "The server is stopping; try again later.");
  }
  return std::nullopt;
}

}  // namespace spud::gateway::internal
