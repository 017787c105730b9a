// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, for the tokenizer kinds of GGUF (`tokenizer.ggml.model`): byte-level
// BPE ("gpt2", pre-tokenizer by name) and SentencePiece ("llama": scores, byte fallback). Built
// from model metadata; immutable and thread-safe afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spud::formats {
class Metadata;
}

namespace spud::tokenizer {

using TokenId = std::int32_t;

struct EncodeOptions {
  bool add_special = false;    // BOS (and EOS where the model asks for it)
  bool parse_special = false;  // recognise "<|im_end|>" as a special token. Never for user content.
};

// Byte offsets [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  [[nodiscard]] static Result<std::shared_ptr<const Tokenizer>> create(
      const formats::Metadata& metadata);

  // Fails only when the text is longer than 2^31 - 1 bytes or contains what the model cannot
  // represent (a SentencePiece model without byte fallback and unknown token). Invalid UTF-8 is
  // tokenised byte by byte. A byte for which a byte-level vocabulary has no token is left out
  // (SmolLM2 lacks 21, among them 0x04 and 0xF1). Cost: O(n log n).
  [[nodiscard]] virtual Result<std::vector<TokenId>> encode(std::string_view text,
                                                            EncodeOptions options) const = 0;

  // As encode(), but inside the `literal` ranges (sorted, not overlapping) no control token is
  // recognised even with `parse_special`: for prompts that hold text of a user. The ids are those
  // of the whole text, whatever the ranges, as long as the user wrote no control token.
  [[nodiscard]] virtual Result<std::vector<TokenId>> encode_with_literals(
      std::string_view text, std::span<const TextRange> literal, EncodeOptions options) const = 0;

  // The bytes a token stands for in the middle of a text ("" for an id out of range). Special
  // tokens give "" unless `render_special`.
  virtual std::string_view token_bytes(TokenId id, bool render_special) const noexcept = 0;
  // The text of a sequence. The SentencePiece dummy leading space is removed when the sequence
  // starts the text (`add_space_prefix` models).
  virtual std::string decode(std::span<const TokenId> ids, bool render_special) const = 0;

  virtual std::size_t vocabulary_size() const noexcept = 0;
  // Bytes of the longest token: a text of n bytes has at least n / longest tokens (where none
  // swallows spaces around it and no byte is left out).
  virtual std::size_t longest_token_bytes() const noexcept = 0;
  // Control or unknown token: hidden when decoding, never made from plain text. User-defined tokens
  // (found in any text) are not special. False for an id out of range.
  virtual bool is_special(TokenId id) const noexcept = 0;
  // End of generation: EOS, EOT and their like ("<|im_end|>", "<end_of_turn>").
  virtual bool is_end_of_generation(TokenId id) const noexcept = 0;
  virtual std::optional<TokenId> bos() const noexcept = 0;
  virtual std::optional<TokenId> eos() const noexcept = 0;
  virtual bool adds_bos() const noexcept = 0;  // encode() with add_special puts BOS in front
  virtual std::optional<TokenId> find_token(std::string_view text) const noexcept = 0;
  virtual std::string_view kind() const noexcept = 0;           // "gpt2", "llama"
  virtual std::string_view pre_tokenizer() const noexcept = 0;  // "smollm", "" for SentencePiece
};

// Turns a stream of tokens into a stream of valid UTF-8: bytes of an unfinished character are held
// back until it is complete; bytes that can never become valid come out as U+FFFD, as a whole-text
// decoder would print them. One per sequence; thread-compatible.
// `continues_text`: the sequence goes on from a text (a completion), so a SentencePiece space at
// its start is kept; otherwise it is dropped, as decode() does.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool render_special = false,
                         bool continues_text = false)
      : tokenizer_(&tokenizer), render_special_(render_special), first_(!continues_text) {}
  std::string push(TokenId id);  // the text that became certain
  std::string finish();          // what is left, invalid bytes replaced

 private:
  const Tokenizer* tokenizer_;
  bool render_special_;
  bool first_;
  std::string pending_;
};

}  // namespace spud::tokenizer
