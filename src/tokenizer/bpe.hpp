// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding (`tokenizer.ggml.model` = "gpt2"): text is cut into words, a word
// starts as one token per byte, and the merges of the model are applied in the order of its list.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::tokenizer {

// kInvalidArgument for a bad vocabulary or a merge that names unknown tokens, kUnimplemented for an
// unknown pre-tokenizer.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> create_bpe(
    const formats::Metadata& metadata);

}  // namespace spud::tokenizer
