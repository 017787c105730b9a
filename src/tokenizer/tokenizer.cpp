// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.hpp"

#include "base/registry.hpp"
#include "formats/model_file.hpp"
#include "tokenizer/bpe.hpp"
#include "tokenizer/sentencepiece.hpp"
#include "tokenizer/utf8.hpp"

namespace spud::tokenizer {
namespace {

struct Kind {
  std::string_view name;
  Result<std::shared_ptr<const Tokenizer>> (*create)(const formats::Metadata&) = nullptr;
};

// The kinds of `tokenizer.ggml.model` that we read.
constexpr auto kKinds = make_registry<Kind>({
    {.name = "gpt2", .create = &create_bpe},
    {.name = "llama", .create = &create_sentencepiece},
});

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(const formats::Metadata& metadata) {
  const std::string* name = metadata.find_string("tokenizer.ggml.model");
  if (name == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "the model has no 'tokenizer.ggml.model' (a string); it cannot be tokenised");
  }
  const auto kind = find_in_registry(std::span<const Kind>(kKinds), "tokenizer kind", *name);
  if (!kind) return fail(ErrorCode::kUnimplemented, "{}", kind.error().message());
  auto made = (*kind)->create(metadata);
  if (!made) return fail_within("tokenizer", std::move(made).error());
  return made;
}

std::string StreamDecoder::push(TokenId id) {
  if (first_) {
    pending_ += tokenizer_->decode({&id, 1}, render_special_);
    // The leading space may be dropped once, from the first token that is text.
    first_ = tokenizer_->is_special(id) || id < 0 ||
             static_cast<std::size_t>(id) >= tokenizer_->vocabulary_size();
  } else {
    pending_ += tokenizer_->token_bytes(id, render_special_);
  }
  std::string certain;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Kind::kIncomplete) break;
    certain += step.kind == Utf8Kind::kValid ? rest.substr(0, step.length) : kReplacementCharacter;
    rest.remove_prefix(step.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return certain;
}

std::string StreamDecoder::finish() {
  std::string rest = to_valid_utf8(pending_);
  pending_.clear();
  return rest;
}

}  // namespace spud::tokenizer
