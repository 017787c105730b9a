// SPDX-License-Identifier: Apache-2.0
#include "gateway/internal/answer.hpp"

namespace spud::gateway::internal {
namespace {

api::TokenText make_token_text(const tokenizer::Tokenizer& tokenizer, tokenizer::TokenId token,
                               float logprob) {
  const std::string_view bytes = tokenizer.token_bytes(token, /*render_special=*/true);
  return {
      .text = api::replace_invalid_utf8(bytes), .bytes = std::string(bytes), .logprob = logprob};
}

}  // namespace

api::TokenInfo make_token_info(const tokenizer::Tokenizer& tokenizer,
                               const engine::TokenEvent& event, bool has_logprob) {
  api::TokenInfo info;
  info.chosen = make_token_text(tokenizer, event.token, event.logprob);
  info.has_logprob = has_logprob;
  for (const engine::TokenLogprob& other : event.top) {
    info.top.push_back(make_token_text(tokenizer, other.token, other.logprob));
  }
  return info;
}

std::string_view finish_name(engine::FinishReason reason) noexcept {
  return reason == engine::FinishReason::kLength ? "length" : "stop";
}

Error finish_error(const engine::FinishEvent& event, bool deadline_passed) {
  if (event.error) return *event.error;
  if (deadline_passed) {
    return Error(ErrorCode::kDeadlineExceeded,
                 "the answer took longer than this server allows; ask for fewer tokens");
  }
  if (event.reason == engine::FinishReason::kCancelled) {
    return Error(ErrorCode::kUnavailable, "the server is stopping; try again later");
  }
  return Error(ErrorCode::kInternal, "the generation failed");
}

}  // namespace spud::gateway::internal
