// SPDX-License-Identifier: Apache-2.0
// What a load test must know about a server before it begins: the model's name, and token ids of
// ordinary words if it can give them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "http/message.hpp"
#include "loadgen/prompts.hpp"

namespace spud::app {

// `form` is "auto", "tokens", "text" or "chat"; auto takes tokens when the server has /tokenize
// (spud and llama.cpp do), because prompts then have exactly the length that was asked for.
[[nodiscard]] Result<loadgen::PromptOptions> prepare_prompts(const http::Url& url,
                                                             const std::string& api_key,
                                                             const std::string& model,
                                                             const std::string& form);

}  // namespace spud::app
