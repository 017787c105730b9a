// SPDX-License-Identifier: Apache-2.0
// The generations of one request (n choices, several prompts), started together and stopped
// together: whatever way the request ends, what still runs is cancelled.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "gateway/event_queue.hpp"

namespace spud::gateway {

// For the executor's one thread.
class GenerationSet {
 public:
  GenerationSet(engine::Engine& engine, boost::asio::any_io_executor executor,
                std::size_t max_buffered_bytes);
  ~GenerationSet();
  GenerationSet(const GenerationSet&) = delete;
  GenerationSet& operator=(const GenerationSet&) = delete;

  // All or none: when one is refused the others are cancelled.
  [[nodiscard]] Result<void> submit(std::vector<engine::GenerationRequest> requests);
  void mark_finished(std::size_t choice);
  bool all_finished() const noexcept { return num_unfinished_ == 0; }
  void cancel();

  // Shared: the engine's thread and the connection's watch may hold it longer than this set.
  const std::shared_ptr<EventQueue>& queue() const noexcept { return queue_; }

 private:
  struct Running {
    engine::GenerationId id = 0;
    bool finished = false;
  };

  engine::Engine* engine_;
  std::shared_ptr<EventQueue> queue_;
  std::vector<Running> running_;
  std::size_t num_unfinished_ = 0;
};

}  // namespace spud::gateway
