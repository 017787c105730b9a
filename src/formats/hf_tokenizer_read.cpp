// SPDX-License-Identifier: Apache-2.0
// tokenizer.json -> tokenizer.ggml.*. Two kinds: byte-level BPE ("gpt2"), whose splitting rule is
// recognised by its regular expression, and SentencePiece-like BPE with byte fallback ("llama"),
// whose scores are made from the order of merges: SentencePiece merges the pair whose result has
// the highest score, so the score of a piece is minus the rank of the first merge that makes it.
#include <algorithm>
#include <set>

#include "formats/hf_json.hpp"
#include "io/byte_reader.hpp"

namespace spud::formats {
namespace {

using io::printable;

// The first of each kind is the name that is given.
constexpr PreTokenizerRule kRules[] = {
    {"gpt-2", "", false},
    {"smollm", "", true},
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

constexpr float kNoMergeScore = -1e6F;  // single characters: no merge makes them

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::map<std::string, std::uint64_t, std::less<>> ids;
  std::set<std::int32_t> strip_left, strip_right;  // swallow the white space beside them
};

Result<void> place_token(Vocabulary& vocabulary, std::string_view text, std::uint64_t id,
                         std::int32_t type, std::vector<bool>& taken) {
  if (id >= vocabulary.tokens.size()) {
    return fail(ErrorCode::kDataLoss,
                "tokenizer.json: the token '{}' has the id {}, but there are "
                "{} embedding rows",
                printable(text), id, vocabulary.tokens.size());
  }
  if (taken[id] && vocabulary.tokens[id] != text) {
    return fail(ErrorCode::kDataLoss, "tokenizer.json: '{}' and '{}' share the id {}",
                printable(vocabulary.tokens[id]), printable(text), id);
  }
  taken[id] = true;
  vocabulary.tokens[id] = std::string(text);
  vocabulary.types[id] = type;
  vocabulary.ids.insert_or_assign(std::string(text), id);
  return {};
}

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
}

Result<Vocabulary> read_vocabulary(const json::object& tokenizer, const json::object& model,
                                   std::uint64_t rows, bool byte_fallback) {
  const json::object* vocab = find_object(model, "vocab");
  if (vocab == nullptr)
    return fail(ErrorCode::kDataLoss, "tokenizer.json: 'model.vocab' is missing");
  if (vocab->size() > rows) {
    return fail(ErrorCode::kDataLoss,
                "tokenizer.json has {} tokens, but there are {} embedding rows", vocab->size(),
                rows);
  }
  Vocabulary result;
  result.tokens.resize(rows);
  result.types.assign(rows, token_type::kUnused);
  std::vector<bool> taken(rows, false);
  const auto unknown = find_text(model, "unk_token");
  for (const auto& [text, value] : *vocab) {
    const std::string_view token(text.data(), text.size());
    const auto id = find_whole(*vocab, token);
    if (!id) return fail(ErrorCode::kDataLoss, "tokenizer.json: '{}' has no id", printable(token));
    const std::int32_t type = byte_fallback && is_byte_token(token) ? token_type::kByte
                              : byte_fallback && token == unknown   ? token_type::kUnknown
                                                                    : token_type::kNormal;
    SPUD_TRY(place_token(result, token, *id, type, taken));
  }
  if (const json::array* added = find_array(tokenizer, "added_tokens")) {
    for (const json::value& item : *added) {
      const json::object* entry = item.if_object();
      const auto text = entry == nullptr ? std::nullopt : find_text(*entry, "content");
      const auto id = entry == nullptr ? std::nullopt : find_whole(*entry, "id");
      if (!text || !id) {
        return fail(ErrorCode::kDataLoss, "tokenizer.json: an added token lacks 'content' or 'id'");
      }
      const bool special = find_flag(*entry, "special").value_or(false);
      const std::int32_t type = byte_fallback && *text == unknown ? token_type::kUnknown
                                : special                         ? token_type::kControl
                                                                  : token_type::kUserDefined;
      SPUD_TRY(place_token(result, *text, *id, type, taken));
      const auto number = static_cast<std::int32_t>(*id);
      if (find_flag(*entry, "lstrip").value_or(false)) result.strip_left.insert(number);
      if (find_flag(*entry, "rstrip").value_or(false)) result.strip_right.insert(number);
    }
  }
  for (std::uint64_t id = 0; id < rows; ++id) {
    if (!taken[id]) result.tokens[id] = fmt::format("[PAD{}]", id);
  }
  return result;
}

struct Merge {
  std::string_view left;
  std::string_view right;
};

// "left right" or ["left", "right"].
Result<std::vector<Merge>> read_merges(const json::object& model) {
  std::vector<Merge> merges;
  const json::array* list = find_array(model, "merges");
  if (list == nullptr) return fail(ErrorCode::kDataLoss, "tokenizer.json: 'merges' is missing");
  merges.reserve(list->size());
  for (const json::value& item : *list) {
    if (const json::string* text = item.if_string()) {
      const std::string_view both = std_view(*text);
      const std::size_t space = both.find(' ', 1);
      if (space == std::string_view::npos) {
        return fail(ErrorCode::kDataLoss, "tokenizer.json: the merge '{}' is not a pair",
                    printable(both));
      }
      merges.push_back({both.substr(0, space), both.substr(space + 1)});
      continue;
    }
    const json::array* pair = item.if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() ||
        !(*pair)[1].is_string()) {
      return fail(ErrorCode::kDataLoss, "tokenizer.json: merge {} is not a pair", merges.size());
    }
    merges.push_back({std_view((*pair)[0].get_string()), std_view((*pair)[1].get_string())});
  }
  return merges;
}

std::vector<float> scores_of(const Vocabulary& vocabulary, const std::vector<Merge>& merges) {
  std::vector<float> scores(vocabulary.tokens.size(), kNoMergeScore);
  float rank = 0;
  std::string piece;
  for (const Merge& merge : merges) {
    piece.assign(merge.left).append(merge.right);
    const auto found = vocabulary.ids.find(piece);
    if (found == vocabulary.ids.end() || scores[found->second] != kNoMergeScore) continue;
    scores[found->second] = -rank;
    rank += 1;
  }
  return scores;
}

// ---- which splitting rule ----

// All "type"d steps of a pre-tokenizer, sequences flattened one level.
std::vector<const json::object*> steps_of(const json::object& tokenizer, std::string_view key,
                                          std::string_view list) {
  std::vector<const json::object*> steps;
  const json::object* top = find_object(tokenizer, key);
  if (top == nullptr) return steps;
  const json::array* inner =
      find_text(*top, "type") == "Sequence" ? find_array(*top, list) : nullptr;
  if (inner == nullptr) return {top};
  for (const json::value& item : *inner) {
    if (const json::object* step = item.if_object()) steps.push_back(step);
  }
  return steps;
}

std::string_view split_pattern(const std::vector<const json::object*>& steps) {
  for (const json::object* step : steps) {
    if (find_text(*step, "type") != "Split") continue;
    const json::object* pattern = find_object(*step, "pattern");
    if (pattern != nullptr) return find_text(*pattern, "Regex").value_or("");
  }
  return {};
}

bool has_step(const std::vector<const json::object*>& steps, std::string_view type) {
  return std::ranges::any_of(
      steps, [&](const json::object* step) { return find_text(*step, "type") == type; });
}

// GGUF's name of the rule, by what tells the published ones apart.
Result<std::string_view> pre_tokenizer_name(const json::object& tokenizer) {
  const auto steps = steps_of(tokenizer, "pre_tokenizer", "pretokenizers");
  const std::string_view pattern = split_pattern(steps);
  const bool byte_level = has_step(steps, "ByteLevel");
  const bool digits = has_step(steps, "Digits");
  for (const PreTokenizerRule& rule : pre_tokenizer_rules()) {
    if (byte_level && pattern == rule.pattern && digits == rule.digits) return rule.name;
  }
  return fail(ErrorCode::kUnimplemented,
              "tokenizer.json: the pre-tokenizer is not one of the known ones (pattern '{}')",
              printable(pattern));
}

// ---- special tokens and flags ----

std::optional<std::string_view> token_text(const json::object& config, std::string_view key) {
  if (const auto text = find_text(config, key)) return text;
  const json::object* object = find_object(config, key);
  return object == nullptr ? std::nullopt : find_text(*object, "content");
}

void read_special_ids(const HfTokenizerFiles& files, const json::object& model_config,
                      const Vocabulary& vocabulary, Metadata& metadata) {
  struct Special {
    const char* token_key;
    const char* id_key;
    const char* gguf_key;
  };
  constexpr Special kSpecials[] = {
      {"bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id"},
  };
  for (const Special& special : kSpecials) {
    auto id = find_whole(model_config, special.id_key);
    if (const json::array* list = find_array(model_config, special.id_key);
        list != nullptr && !list->empty() && list->front().is_int64()) {
      id = static_cast<std::uint64_t>(list->front().get_int64());
    }
    if (const auto text = token_text(files.config, special.token_key)) {
      const auto found = vocabulary.ids.find(*text);
      if (found != vocabulary.ids.end()) id = found->second;
    }
    if (id && *id < vocabulary.tokens.size()) {
      metadata.set(special.gguf_key, {static_cast<std::uint32_t>(*id)});
    }
  }
}

// Whether the post-processor's template for one text begins (or ends) with this token.
bool template_has(const json::object& tokenizer, const Metadata& metadata, bool front) {
  const auto id =
      metadata.find_uint(front ? "tokenizer.ggml.bos_token_id" : "tokenizer.ggml.eos_token_id");
  const auto* tokens = metadata.find_strings("tokenizer.ggml.tokens");
  if (!id || tokens == nullptr || *id >= tokens->size()) return false;
  for (const json::object* step : steps_of(tokenizer, "post_processor", "processors")) {
    const json::array* single = find_array(*step, "single");
    if (find_text(*step, "type") != "TemplateProcessing" || single == nullptr || single->empty()) {
      continue;
    }
    const json::object* item = (front ? single->front() : single->back()).if_object();
    const json::object* special = item == nullptr ? nullptr : find_object(*item, "SpecialToken");
    if (special != nullptr && find_text(*special, "id") == (*tokens)[*id]) return true;
  }
  return false;
}

bool adds_space_prefix(const json::object& tokenizer) {
  for (const json::object* step : steps_of(tokenizer, "pre_tokenizer", "pretokenizers")) {
    const auto scheme = find_text(*step, "prepend_scheme");
    if (find_flag(*step, "add_prefix_space").value_or(false) && !scheme) return true;
    if (scheme && *scheme != "never") return true;
  }
  return has_step(steps_of(tokenizer, "normalizer", "normalizers"), "Prepend");
}

void read_chat_template(const HfTokenizerFiles& files, Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  if (const auto text = find_text(files.config, "chat_template")) {
    metadata.set(kKey, {std::string(*text)});
  }
  if (const json::array* list = find_array(files.config, "chat_template")) {
    for (const json::value& item : *list) {
      const json::object* entry = item.if_object();
      const auto name = entry == nullptr ? std::nullopt : find_text(*entry, "name");
      const auto text = entry == nullptr ? std::nullopt : find_text(*entry, "template");
      if (!name || !text) continue;
      metadata.set(*name == "default" ? std::string(kKey) : fmt::format("{}.{}", kKey, *name),
                   {std::string(*text)});
    }
  }
  if (!files.chat_template.empty()) metadata.set(kKey, {files.chat_template});
}

}  // namespace

std::span<const PreTokenizerRule> pre_tokenizer_rules() noexcept { return kRules; }

Result<void> tokenizer_to_metadata(const HfTokenizerFiles& files, const json::object& model_config,
                                   std::uint64_t vocabulary_size, Metadata& metadata) {
  const json::object& tokenizer = files.tokenizer;
  const json::object* model = find_object(tokenizer, "model");
  if (model == nullptr || find_text(*model, "type").value_or("BPE") != "BPE") {
    return fail(ErrorCode::kUnimplemented,
                "tokenizer.json: only tokenizers of the model type 'BPE' are supported");
  }
  const bool byte_fallback = find_flag(*model, "byte_fallback").value_or(false);
  SPUD_TRY(auto vocabulary, read_vocabulary(tokenizer, *model, vocabulary_size, byte_fallback));
  SPUD_TRY(const auto merges, read_merges(*model));

  metadata.set("tokenizer.ggml.model", {std::string(byte_fallback ? "llama" : "gpt2")});
  if (byte_fallback) {
    metadata.set("tokenizer.ggml.pre", {std::string("default")});
    metadata.set("tokenizer.ggml.scores", {MetadataArray{scores_of(vocabulary, merges)}});
  } else {
    SPUD_TRY(const std::string_view pre, pre_tokenizer_name(tokenizer));
    metadata.set("tokenizer.ggml.pre", {std::string(pre)});
    std::vector<std::string> texts;
    texts.reserve(merges.size());
    for (const Merge& merge : merges)
      texts.push_back(fmt::format("{} {}", merge.left, merge.right));
    metadata.set("tokenizer.ggml.merges", {MetadataArray{std::move(texts)}});
  }
  metadata.set("tokenizer.ggml.tokens", {MetadataArray{vocabulary.tokens}});
  metadata.set("tokenizer.ggml.token_type", {MetadataArray{vocabulary.types}});
  for (const auto& [key, ids] : {std::pair(kLeftStripKey, &vocabulary.strip_left),
                                 std::pair(kRightStripKey, &vocabulary.strip_right)}) {
    if (ids->empty()) continue;
    metadata.set(key, {MetadataArray{std::vector<std::int32_t>(ids->begin(), ids->end())}});
  }
  read_special_ids(files, model_config, vocabulary, metadata);
  metadata.set(
      "tokenizer.ggml.add_bos_token",
      {find_flag(files.config, "add_bos_token").value_or(template_has(tokenizer, metadata, true))});
  metadata.set("tokenizer.ggml.add_eos_token",
               {find_flag(files.config, "add_eos_token")
                    .value_or(template_has(tokenizer, metadata, false))});
  metadata.set("tokenizer.ggml.add_space_prefix", {adds_space_prefix(tokenizer)});
  read_chat_template(files, metadata);
  return {};
}

}  // namespace spud::formats
