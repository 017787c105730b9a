// SPDX-License-Identifier: Apache-2.0
// The JSON of answers, whole and in stream chunks, for the two generation endpoints. They differ in
// names and nesting only, so one set of functions takes the surface as an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spud::api {

enum class Surface { kChat, kCompletion };

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t cached_tokens = 0;  // part of prompt_tokens
};

// The same in every chunk of one answer.
struct AnswerHead {
  Surface surface = Surface::kChat;
  std::string id;
  std::int64_t created = 0;  // Unix seconds
  std::string model;
  std::string system_fingerprint;
  bool usage_in_stream = false;  // include_usage: chunks then carry "usage": null
};

struct TokenText {
  std::string text;   // valid UTF-8: broken bytes replaced
  std::string bytes;  // exact
  float logprob = 0;
};
struct TokenInfo {
  TokenText chosen;
  // False for the first token of an echoed prompt, which nothing predicts: its logprob is null.
  bool has_logprob = true;
  std::vector<TokenText> top;
};

struct Choice {
  std::int64_t index = 0;
  std::string text;
  std::string finish_reason;                     // "stop" or "length"; "" = null (in a chunk)
  std::optional<std::vector<TokenInfo>> tokens;  // with logprobs
  std::int64_t first_text_offset = 0;            // of `tokens`, in characters (completions)
};

std::string make_answer(const AnswerHead& head, std::span<const Choice> choices,
                        const Usage& usage);

// The first chunk of a chat choice: who speaks.
std::string make_role_chunk(const AnswerHead& head, std::int64_t index);
// Text, log-probs and possibly the finish reason.
std::string make_chunk(const AnswerHead& head, const Choice& choice);
// The chunk with empty choices that include_usage asks for.
std::string make_usage_chunk(const AnswerHead& head, const Usage& usage);

// Valid UTF-8: every maximal broken part becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);
std::int64_t count_characters(std::string_view utf8) noexcept;

}  // namespace spud::api
