// SPDX-License-Identifier: Apache-2.0
// Renders a conversation to a prompt with the model's own template (Jinja, the subset published
// templates use). Steps and output are limited; an unsupported construct is named with its line.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spud::tokenizer {

struct ChatTemplateInput {
  boost::json::value messages;  // array of {role, content, ...}
  boost::json::value tools;     // array or null
  bool add_generation_prompt = true;
  std::string bos_token;  // text of BOS and EOS, "" when there is none
  std::string eos_token;
  boost::json::object extra;          // further variables (chat_template_kwargs)
  std::int64_t now_unix_seconds = 0;  // for strftime_now (UTC)
};

struct ChatTemplateLimits {
  std::size_t max_steps = 2'000'000;
  std::size_t max_output_bytes = 16u << 20;
  std::size_t max_depth = 200;
};

// A piece of a rendered prompt: template text may contain special tokens, user content must not be
// parsed for them. Adjacent pieces of one kind are merged.
struct PromptPiece {
  std::string text;
  bool from_user = false;
};

// Published templates have up to 20 kB.
inline constexpr std::size_t kMaxTemplateBytes = 1u << 20;

// Parsed once, then immutable and thread-safe.
class ChatTemplate {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const ChatTemplate>> parse(std::string_view source);
  virtual ~ChatTemplate() = default;
  // kInvalidArgument: raise_exception or bad messages (a client's mistake, with the template's own
  // message); kResourceExhausted: a limit; kUnimplemented: construct not supported.
  [[nodiscard]] virtual Result<std::vector<PromptPiece>> render(
      const ChatTemplateInput& input, const ChatTemplateLimits& limits = {}) const = 0;
};

}  // namespace spud::tokenizer
