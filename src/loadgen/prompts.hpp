// SPDX-License-Identifier: Apache-2.0
// The bodies that are sent: prompts of random common words, of exactly so many tokens where the
// server takes token ids, of about so many where it takes text. No two prompts are alike except in
// the shared prefix, so that a server's cache finds that and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/arrivals.hpp"

namespace spud::loadgen {

enum class PromptForm : std::uint8_t {
  kTokens,  // /v1/completions with token ids
  kText,    // /v1/completions with words: about one token each
  kChat,    // /v1/chat/completions: the prefix as system message, the rest as user message
};

struct PromptOptions {
  PromptForm form = PromptForm::kText;
  std::string model;
  std::vector<std::int32_t> token_pool;  // kTokens: ids to draw from, of ordinary words
  bool ignore_eos = true;                // an extension of vLLM, llama.cpp and spud
  double temperature = 0;
};

// Words enough to fill a pool; the same text every time.
std::string sample_text(std::size_t words, std::uint64_t seed = 1);

// Thread-compatible.
class PromptMaker {
 public:
  explicit PromptMaker(PromptOptions options) : options_(std::move(options)) {}

  std::string_view path() const noexcept;  // after the server's address
  std::string body(const Planned& planned, std::int64_t shared_prefix) const;

 private:
  PromptOptions options_;
};

}  // namespace spud::loadgen
