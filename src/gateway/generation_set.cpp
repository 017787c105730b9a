// SPDX-License-Identifier: Apache-2.0
#include "gateway/generation_set.hpp"

namespace spud::gateway {
namespace {

engine::GenerationSink make_sink(std::shared_ptr<EventQueue> queue, std::size_t choice) {
  return engine::GenerationSink{
      .on_token =
          [queue, choice](engine::TokenEvent&& event) {
            queue->push({.choice = choice, .event = std::move(event)});
          },
      .on_finish =
          [queue, choice](engine::FinishEvent&& event) {
            queue->push({.choice = choice, .event = std::move(event)});
          },
      .on_prompt =
          [queue, choice](std::vector<engine::TokenEvent>&& events) {
            queue->push({.choice = choice, .event = std::move(events)});
          },
  };
}

}  // namespace

GenerationSet::GenerationSet(engine::Engine& engine, boost::asio::any_io_executor executor,
                             std::size_t max_buffered_bytes)
    : engine_(&engine),
      queue_(std::make_shared<EventQueue>(std::move(executor), max_buffered_bytes)) {}

GenerationSet::~GenerationSet() {
  queue_->set_overflow_callback(nullptr);
  cancel();
}

Result<void> GenerationSet::submit(std::vector<engine::GenerationRequest> requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto id = engine_->submit(std::move(requests[i]), make_sink(queue_, i));
    if (!id) {
      cancel();
      return std::unexpected(std::move(id).error());
    }
    running_.push_back({.id = *id});
    ++num_unfinished_;
  }
  return {};
}

void GenerationSet::mark_finished(std::size_t choice) {
  if (!std::exchange(running_[choice].finished, true)) --num_unfinished_;
}

void GenerationSet::cancel() {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].finished) continue;
    engine_->cancel(running_[i].id);
    mark_finished(i);
  }
}

}  // namespace spud::gateway
