// SPDX-License-Identifier: Apache-2.0
// The common half of the two generation endpoints: from prompts as tokens to a whole answer or a
// stream. See run_generation.cpp for the life of a request.
#pragma once

#include <string>
#include <vector>

#include "api/requests.hpp"
#include "api/responses.hpp"
#include "gateway/internal/state.hpp"

namespace spud::gateway::internal {

struct PreparedPrompt {
  std::vector<tokenizer::TokenId> tokens;
  std::string echo_text;  // with echo: goes in front of the generated text
};

struct Job {
  api::Surface surface = api::Surface::kChat;
  api::GenerationParams params;
  std::vector<PreparedPrompt> prompts;
  std::string prompt_param;  // "messages" or "prompt", for errors
  bool echo = false;
};

// Answers the exchange. Every way out cancels what still runs.
boost::asio::awaitable<void> run_generation(State& state, http::Exchange& exchange,
                                            const RequestContext& context, Job job);

// Refusals that need no tokens: unknown model, draining. Nothing = go on.
std::optional<api::ApiError> refuse_early(const State& state, const std::string& model);

}  // namespace spud::gateway::internal
