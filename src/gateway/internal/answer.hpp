// SPDX-License-Identifier: Apache-2.0
// Engine events of one choice, gathered into what an answer needs: text, log-probs, reason, counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/responses.hpp"
#include "concurrency/clock.hpp"
#include "engine/engine.hpp"

namespace spud::gateway::internal {

// Engine log-probs with the texts of their tokens. `continues`: not the first of an echoed prompt.
api::TokenInfo make_token_info(const tokenizer::Tokenizer& tokenizer,
                               const engine::TokenEvent& event, bool has_logprob = true);

std::string_view finish_name(engine::FinishReason reason) noexcept;

// Why a generation ended without an answer: its own error, its deadline, or the server's stop.
Error finish_error(const engine::FinishEvent& event, bool deadline_passed);

struct ChoiceProgress {
  std::size_t prompt_idx = 0;
  std::int64_t num_tokens = 0;      // events seen
  std::int64_t num_characters = 0;  // of the token texts so far, for text_offset
  concurrency::SteadyTime first_token;
  concurrency::SteadyTime last_token;
  bool role_sent = false;
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t cached_tokens = 0;
};

}  // namespace spud::gateway::internal
