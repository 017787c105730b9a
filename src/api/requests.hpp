// SPDX-License-Identifier: Apache-2.0
// What clients ask for, checked: a struct that exists is valid as far as it can be without a model.
// Fields follow OpenAI's API, plus top_k, min_p, repetition_penalty, ignore_eos, priority and
// timeout as other servers name them. Fields we do not know are ignored; fields we know and cannot
// honour are refused.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace spud::api {

struct RequestLimits {
  std::int64_t max_choices = 16;   // `n`
  std::int64_t max_prompts = 128;  // of one completion request, and prompts times n
};

inline constexpr std::size_t kMaxStopStrings = 16;
inline constexpr std::size_t kMaxStopBytes = 1024;
inline constexpr std::int64_t kMaxTopLogprobs = 20;

struct GenerationParams {
  std::string model;  // "" = whatever is served
  float temperature = 1.0F;
  float top_p = 1.0F;
  float min_p = 0.0F;
  std::int64_t top_k = 0;  // 0 = off
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  float repetition_penalty = 1.0F;
  std::vector<std::pair<std::int32_t, float>> logit_bias;
  std::optional<std::int64_t> seed;
  std::int64_t n = 1;
  std::optional<std::int64_t> max_tokens;
  std::string max_tokens_param = "max_tokens";  // the name the client used
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool stream = false;
  bool include_usage = false;
  std::int64_t top_logprobs = -1;  // -1 = none, 0 = the chosen token only
  std::string user;
  std::optional<std::int64_t> priority;  // lower goes first, as in vLLM
  std::optional<double> timeout_s;       // from arrival to the end of the answer, as in LiteLLM
};

struct ChatRequest {
  GenerationParams params;
  // Array of {role, content, ...}: content is one string each.
  boost::json::value messages;
  boost::json::object template_arguments;  // chat_template_kwargs
};

// A prompt as text or as token ids.
using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

struct CompletionRequest {
  GenerationParams params;
  std::vector<Prompt> prompts;  // at least one
  bool echo = false;
};

struct TokenizeRequest {
  std::string content;
  bool add_special = false;
  bool parse_special = true;
  bool with_pieces = false;
};

// Each: kInvalidArgument with the field at fault as param().
[[nodiscard]] Result<ChatRequest> parse_chat_request(std::string_view body,
                                                     const RequestLimits& limits = {});
[[nodiscard]] Result<CompletionRequest> parse_completion_request(std::string_view body,
                                                                 const RequestLimits& limits = {});
[[nodiscard]] Result<TokenizeRequest> parse_tokenize_request(std::string_view body);
[[nodiscard]] Result<std::vector<std::int32_t>> parse_detokenize_request(std::string_view body);

// Checks `messages` and gives it back with every content as one string (text parts joined by line
// breaks). Part of parse_chat_request; exposed for its tests.
[[nodiscard]] Result<boost::json::array> normalize_messages(const boost::json::value& messages);

}  // namespace spud::api
