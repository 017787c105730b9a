// SPDX-License-Identifier: Apache-2.0
// SentencePiece's BPE (`tokenizer.ggml.model` = "llama"): a space is U+2581, the pair of neighbours
// whose concatenation has the best score merges first, and a character without a token becomes its
// bytes ("<0xE2>") or, without byte tokens, the unknown token.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer {

// kInvalidArgument for a bad vocabulary.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> create_sentencepiece(
    const formats::Metadata& metadata);

}  // namespace spud::tokenizer
