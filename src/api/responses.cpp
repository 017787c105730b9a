// SPDX-License-Identifier: Apache-2.0
#include "api/responses.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

namespace spud::api {
namespace json = boost::json;

namespace {

// What OpenAI sends for "as good as impossible"; minus infinity is not JSON.
constexpr float kLowestLogprob = -9999.0F;

json::value logprob_value(float logprob) {
  if (!(logprob > kLowestLogprob)) return static_cast<double>(kLowestLogprob);
  return static_cast<double>(logprob);
}

json::object chat_token(const TokenText& token) {
  json::array bytes;
  bytes.reserve(token.bytes.size());
  for (const char c : token.bytes) bytes.emplace_back(static_cast<unsigned char>(c));
  json::object out;
  out["token"] = token.text;
  out["logprob"] = logprob_value(token.logprob);
  out["bytes"] = std::move(bytes);
  return out;
}

json::object chat_logprobs(const std::vector<TokenInfo>& tokens) {
  json::array content;
  for (const TokenInfo& token : tokens) {
    json::object entry = chat_token(token.chosen);
    json::array top;
    for (const TokenText& other : token.top) top.emplace_back(chat_token(other));
    entry["top_logprobs"] = std::move(top);
    content.emplace_back(std::move(entry));
  }
  json::object out;
  out["content"] = std::move(content);
  out["refusal"] = nullptr;
  return out;
}

json::object completion_logprobs(const std::vector<TokenInfo>& tokens, std::int64_t text_offset) {
  json::array texts;
  json::array logprobs;
  json::array tops;
  json::array offsets;
  for (const TokenInfo& token : tokens) {
    texts.emplace_back(token.chosen.text);
    offsets.emplace_back(text_offset);
    text_offset += count_characters(token.chosen.text);
    if (!token.has_logprob) {
      logprobs.emplace_back(nullptr);
      tops.emplace_back(nullptr);
      continue;
    }
    logprobs.emplace_back(logprob_value(token.chosen.logprob));
    json::object top;
    for (const TokenText& other : token.top) top[other.text] = logprob_value(other.logprob);
    // The chosen token is always there, even when it is not among the most likely.
    top[token.chosen.text] = logprob_value(token.chosen.logprob);
    tops.emplace_back(std::move(top));
  }
  json::object out;
  out["tokens"] = std::move(texts);
  out["token_logprobs"] = std::move(logprobs);
  out["top_logprobs"] = std::move(tops);
  out["text_offset"] = std::move(offsets);
  return out;
}

json::value logprobs_value(Surface surface, const Choice& choice) {
  if (!choice.tokens) return nullptr;
  if (surface == Surface::kChat) return chat_logprobs(*choice.tokens);
  return completion_logprobs(*choice.tokens, choice.first_text_offset);
}

json::value finish_value(const std::string& reason) {
  if (reason.empty()) return nullptr;
  return json::value(reason);
}

json::object usage_object(const Usage& usage) {
  json::object out;
  out["prompt_tokens"] = usage.prompt_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  out["prompt_tokens_details"] =
      json::object{{"cached_tokens", usage.cached_tokens}, {"audio_tokens", 0}};
  out["completion_tokens_details"] = json::object{{"reasoning_tokens", 0},
                                                  {"audio_tokens", 0},
                                                  {"accepted_prediction_tokens", 0},
                                                  {"rejected_prediction_tokens", 0}};
  return out;
}

json::object head_object(const AnswerHead& head, bool is_chunk) {
  const bool chat = head.surface == Surface::kChat;
  json::object out;
  out["id"] = head.id;
  out["object"] = !chat      ? "text_completion"
                  : is_chunk ? "chat.completion.chunk"
                             : "chat.completion";
  out["created"] = head.created;
  out["model"] = head.model;
  out["system_fingerprint"] = head.system_fingerprint;
  return out;
}

std::string chunk_text(const AnswerHead& head, json::object choice) {
  json::object out = head_object(head, true);
  json::array choices;
  choices.emplace_back(std::move(choice));
  out["choices"] = std::move(choices);
  if (head.usage_in_stream) out["usage"] = nullptr;
  return json::serialize(out);
}

}  // namespace

std::string make_answer(const AnswerHead& head, std::span<const Choice> choices,
                        const Usage& usage) {
  json::object out = head_object(head, false);
  json::array list;
  for (const Choice& choice : choices) {
    json::object item;
    item["index"] = choice.index;
    if (head.surface == Surface::kChat) {
      json::object message;
      message["role"] = "assistant";
      message["content"] = choice.text;
      message["refusal"] = nullptr;
      item["message"] = std::move(message);
    } else {
      item["text"] = choice.text;
    }
    item["logprobs"] = logprobs_value(head.surface, choice);
    item["finish_reason"] = finish_value(choice.finish_reason);
    list.emplace_back(std::move(item));
  }
  out["choices"] = std::move(list);
  out["usage"] = usage_object(usage);
  return json::serialize(out);
}

std::string make_role_chunk(const AnswerHead& head, std::int64_t index) {
  json::object choice;
  choice["index"] = index;
  choice["delta"] = json::object{{"role", "assistant"}, {"content", ""}};
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = nullptr;
  return chunk_text(head, std::move(choice));
}

std::string make_chunk(const AnswerHead& head, const Choice& choice) {
  json::object item;
  item["index"] = choice.index;
  if (head.surface == Surface::kChat) {
    json::object delta;
    if (!choice.text.empty()) delta["content"] = choice.text;
    item["delta"] = std::move(delta);
  } else {
    item["text"] = choice.text;
  }
  item["logprobs"] = logprobs_value(head.surface, choice);
  item["finish_reason"] = finish_value(choice.finish_reason);
  return chunk_text(head, std::move(item));
}

std::string make_usage_chunk(const AnswerHead& head, const Usage& usage) {
  json::object out = head_object(head, true);
  out["choices"] = json::array();
  out["usage"] = usage_object(usage);
  return json::serialize(out);
}

std::string replace_invalid_utf8(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string out;
  std::size_t i = 0;
  while (i < bytes.size()) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    std::size_t length = 1;
    unsigned low = 0x80;  // limits of the second byte (Unicode table 3-7)
    unsigned high = 0xBF;
    if (lead < 0x80) {
      out += bytes[i++];
      continue;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
      length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      length = 3;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      length = 4;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    std::size_t good = 1;
    while (good < length && i + good < bytes.size()) {
      const auto next = static_cast<unsigned char>(bytes[i + good]);
      if (next < low || next > high) break;
      low = 0x80;
      high = 0xBF;
      ++good;
    }
    if (length > 1 && good == length) {
      out += bytes.substr(i, length);
    } else {
      out += kReplacement;
    }
    i += good;
  }
  return out;
}

std::int64_t count_characters(std::string_view utf8) noexcept {
  return std::count_if(utf8.begin(), utf8.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace spud::api
