// SPDX-License-Identifier: Apache-2.0
// From a job to what the engine is asked for: one request for each prompt and choice, with their
// limits, seeds and deadline.
#pragma once

#include <expected>
#include <optional>
#include <vector>

#include "api/errors.hpp"
#include "engine/engine.hpp"
#include "gateway/internal/run_generation.hpp"

namespace spud::gateway::internal {

// The earliest of what the server, the header and the body allow.
std::optional<concurrency::SteadyTime> deadline_of(const State& state,
                                                   const RequestContext& context, const Job& job);

// Before a text of `bytes` is made into tokens, which takes seconds for megabytes: an error when it
// is more than a context of the longest tokens holds.
std::optional<api::ApiError> refuse_too_long(const engine::Engine& engine, std::size_t bytes,
                                             const std::string& param);

// Choices of one prompt stand together. An error when a prompt does not fit into the context.
std::expected<std::vector<engine::GenerationRequest>, api::ApiError> make_requests(
    State& state, const RequestContext& context, Job& job);

}  // namespace spud::gateway::internal
