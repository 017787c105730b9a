// SPDX-License-Identifier: Apache-2.0
// Any bytes as a vocabulary with a text: created or refused, encoded, decoded, streamed.
// First byte: kind, pre-tokenizer and flags; then tokens, types, scores, merges, ids and a text,
// the strings ended by 0xFF.
#include "base/check.hpp"
#include "formats/model_file.hpp"
#include "fuzz_target.hpp"
#include "tokenizer/byte_level.hpp"
#include "tokenizer/prompt.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tokenizer/utf8.hpp"

namespace spud::fuzz {
namespace {

using tokenizer::TokenId;
using tokenizer::Tokenizer;

formats::MetadataValue string_value(std::string text) {
  formats::MetadataValue value;
  value.value = std::move(text);
  return value;
}

template <typename T>
formats::MetadataValue array_value(std::vector<T> items) {
  formats::MetadataValue value;
  formats::MetadataArray array;
  array.values = std::move(items);
  value.value = std::move(array);
  return value;
}

// The bytes as fields; past the end everything is empty or zero.
class Fields {
 public:
  explicit Fields(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return first;
  }
  std::string text() {
    std::string out;
    while (!bytes_.empty()) {
      const std::uint8_t next = byte();
      if (next == 0xFF) break;
      out.push_back(static_cast<char>(next));
    }
    return out;
  }
  std::string rest() { return std::string(bytes_.begin(), bytes_.end()); }

 private:
  std::span<const std::uint8_t> bytes_;
};

formats::Metadata metadata_of(Fields& fields) {
  static constexpr std::string_view kPre[] = {"gpt2",    "smollm", "llama3",      "qwen2",
                                              "tekken",  "gpt-4o", "deepseek-v3", "falcon",
                                              "default", "nope"};
  const std::uint8_t flags = fields.byte();
  const bool bpe = (flags & 1) != 0;
  formats::Metadata metadata;
  metadata.set("tokenizer.ggml.model", string_value(bpe ? "gpt2" : "llama"));
  metadata.set("tokenizer.ggml.pre", string_value(std::string(kPre[(flags >> 1) % 10])));
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  if ((flags & 0x80) != 0) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      tokens.push_back(bpe ? tokenizer::byte_to_text(static_cast<std::uint8_t>(byte))
                           : fmt::format("<0x{:02X}>", byte));
      types.push_back(bpe ? 1 : 6);
      scores.push_back(0);
    }
  }
  for (unsigned i = fields.byte() % 32; i > 0; --i) {
    types.push_back(fields.byte() % 8);
    scores.push_back(static_cast<float>(fields.byte()) - 100);
    tokens.push_back(fields.text());
  }
  if ((flags & 0x40) != 0) types.resize(types.size() / 2);
  std::vector<std::string> merges;
  for (unsigned i = fields.byte() % 16; i > 0; --i) merges.push_back(fields.text());
  const auto id = [&](std::string_view key) {
    formats::MetadataValue value;
    value.value = static_cast<std::uint32_t>(fields.byte());
    metadata.set(key, value);
  };
  metadata.set("tokenizer.ggml.tokens", array_value(std::move(tokens)));
  metadata.set("tokenizer.ggml.token_type", array_value(std::move(types)));
  metadata.set("tokenizer.ggml.scores", array_value(std::move(scores)));
  metadata.set("tokenizer.ggml.merges", array_value(std::move(merges)));
  const std::uint8_t ids = fields.byte();
  if ((ids & 1) != 0) id("tokenizer.ggml.bos_token_id");
  if ((ids & 2) != 0) id("tokenizer.ggml.eos_token_id");
  if ((ids & 4) != 0) id("tokenizer.ggml.unknown_token_id");
  formats::MetadataValue prefix;
  prefix.value = (ids & 8) != 0;
  metadata.set("tokenizer.ggml.add_space_prefix", prefix);
  return metadata;
}

void check_texts(const Tokenizer& model, const std::string& text) {
  const auto ids = model.encode(text, {.add_special = true, .parse_special = true});
  if (!ids) return;
  tokenizer::StreamDecoder decoder(model, /*render_special=*/true);
  std::string streamed;
  for (const TokenId id : *ids) {
    SPUD_CHECK(id >= 0 && static_cast<std::size_t>(id) < model.vocabulary_size());
    streamed += decoder.push(id);
  }
  streamed += decoder.finish();
  SPUD_CHECK(streamed == tokenizer::to_valid_utf8(model.decode(*ids, /*render_special=*/true)));
  const std::vector<tokenizer::PromptPiece> pieces = {{text, true}};
  const auto prompt = tokenizer::encode_prompt(model, pieces);
  SPUD_CHECK(prompt.has_value());
  for (std::size_t i = 0; i < prompt->size(); ++i) {
    const TokenId id = (*prompt)[i];
    const bool is_bos = i == 0 && model.adds_bos() && id == model.bos();
    // Only the unknown token may come from text; it is the one the model itself puts there.
    SPUD_CHECK(is_bos || !model.is_special(id) || model.kind() == "llama");
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (unsigned flags = 0; flags < 256; flags += 7) {
    std::string seed(1, static_cast<char>(flags));
    seed += '\x04';
    seed += "\x01\x10he\xFF\x03\x11<|x|>\xFF\x04\x12[u]\xFF\x01\x13\xE2\x96\x81\xFF";
    seed += "\x02h e\xFFhe l\xFF";
    seed += "\x0F\x01\x02\x03";
    seeds.push_back(seed + "hello <|x|> [u] \xF0\x9F\x99\x82 \xFF\xC3 12 it's\n\n");
    seeds.push_back(std::string(1, static_cast<char>(flags | 0x80)) + std::string(3, '\0') +
                    "any text \xE4\xBD\xA0 at all, 2026-11-30");
  }
  return seeds;
}

}  // namespace spud::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spud::fuzz::Fields fields({data, size});
  const spud::formats::Metadata metadata = spud::fuzz::metadata_of(fields);
  const auto tokenizer = spud::tokenizer::Tokenizer::create(metadata);
  if (tokenizer) {
    spud::fuzz::check_texts(**tokenizer, fields.rest());
  } else {
    SPUD_CHECK(!tokenizer.error().message().empty());
    SPUD_CHECK(tokenizer.error().code() != spud::ErrorCode::kInternal);
  }
  return 0;
}
