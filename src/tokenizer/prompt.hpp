// SPDX-License-Identifier: Apache-2.0
// A rendered prompt to token ids: special tokens are recognised in the template's own text only.
// The ids are those of the whole text at once, so that no merge is lost where a message begins.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/chat_template.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer {

// BOS is put in front when the model wants one and the template has not written it; EOS never: the
// model is to go on.
[[nodiscard]] Result<std::vector<TokenId>> encode_prompt(const Tokenizer& tokenizer,
                                                         std::span<const PromptPiece> pieces);

}  // namespace spud::tokenizer
