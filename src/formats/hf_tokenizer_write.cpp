// SPDX-License-Identifier: Apache-2.0
// tokenizer.ggml.* -> tokenizer.json and tokenizer_config.json, as the `tokenizers` library reads
// them. The inverse of hf_tokenizer_read.cpp.
#include <algorithm>
#include <unordered_map>

#include "formats/hf_json.hpp"
#include "io/byte_reader.hpp"

namespace spud::formats {
namespace {

using io::printable;

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, SentencePiece's visible space

struct Tokens {
  const std::vector<std::string>& texts;
  const std::vector<std::int32_t>* types;  // may be null: all normal

  std::int32_t type(std::size_t id) const {
    return types == nullptr || id >= types->size() ? token_type::kNormal : (*types)[id];
  }
  // Holes that were filled up when reading: they are filled up again.
  bool is_filler(std::size_t id) const {
    return type(id) == token_type::kUnused && texts[id] == fmt::format("[PAD{}]", id);
  }
};

json::object make_vocab(const Tokens& tokens) {
  json::object vocab;
  vocab.reserve(tokens.texts.size());
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (!tokens.is_filler(id)) vocab[json_view(tokens.texts[id])] = id;
  }
  return vocab;
}

json::array make_added_tokens(const Metadata& metadata, const Tokens& tokens) {
  const auto lists = [&](std::string_view key, std::size_t id) {
    const auto* ids = metadata.find_ints(key);
    return ids != nullptr && std::ranges::find(*ids, static_cast<std::int32_t>(id)) != ids->end();
  };
  json::array added;
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    const std::int32_t type = tokens.type(id);
    if (type != token_type::kControl && type != token_type::kUserDefined &&
        type != token_type::kUnknown)
      continue;
    added.push_back(json::object{{"id", id},
                                 {"content", json_view(tokens.texts[id])},
                                 {"single_word", false},
                                 {"lstrip", lists(kLeftStripKey, id)},
                                 {"rstrip", lists(kRightStripKey, id)},
                                 {"normalized", false},
                                 {"special", type != token_type::kUserDefined}});
  }
  return added;
}

json::object byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Result<json::value> make_pre_tokenizer(std::string_view name) {
  // Old files call it "gpt2" or do not say.
  if (name == "gpt2" || name.empty()) name = "gpt-2";
  const auto rules = pre_tokenizer_rules();
  const auto rule = std::ranges::find(rules, name, &PreTokenizerRule::name);
  if (rule == rules.end()) {
    return fail(ErrorCode::kUnimplemented, "the pre-tokenizer '{}' cannot be written",
                printable(name));
  }
  json::array steps;
  if (rule->digits) {
    steps.push_back(json::object{{"type", "Digits"}, {"individual_digits", true}});
  }
  if (!rule->pattern.empty()) {
    steps.push_back(json::object{{"type", "Split"},
                                 {"pattern", json::object{{"Regex", json_view(rule->pattern)}}},
                                 {"behavior", "Isolated"},
                                 {"invert", false}});
  }
  steps.push_back(byte_level(rule->pattern.empty()));
  return json::object{{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

json::object replace_step(std::string_view from, std::string_view to) {
  return {{"type", "Replace"},
          {"pattern", json::object{{"String", json_view(from)}}},
          {"content", json_view(to)}};
}

// Merges of a SentencePiece vocabulary: every way to put a piece together from two others, the
// highest score first, as its own merging would go.
json::array make_merges(const Tokens& tokens, const std::vector<float>& scores) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.type(id) == token_type::kNormal || tokens.type(id) == token_type::kUserDefined) {
      ids.emplace(tokens.texts[id], id);
    }
  }
  struct Merge {
    float score;
    std::size_t left, right;
  };
  std::vector<Merge> merges;
  for (const auto& [text, id] : ids) {
    if (tokens.type(id) != token_type::kNormal || text.size() > 256) continue;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;  // inside a character
      const auto left = ids.find(text.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(text.substr(cut));
      if (right != ids.end()) merges.push_back({scores[id], left->second, right->second});
    }
  }
  std::ranges::sort(merges, [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::pair(a.left, a.right) < std::pair(b.left, b.right);
  });
  json::array result;
  result.reserve(merges.size());
  for (const Merge& merge : merges) {
    result.push_back(
        json::array{json_view(tokens.texts[merge.left]), json_view(tokens.texts[merge.right])});
  }
  return result;
}

std::optional<std::string_view> special_text(const Metadata& metadata, const Tokens& tokens,
                                             std::string_view key) {
  const auto id = metadata.find_uint(key);
  if (!id || *id >= tokens.texts.size()) return std::nullopt;
  return tokens.texts[*id];
}

// Puts BOS in front (and EOS behind) where the model asks for it.
json::value make_post_processor(const Metadata& metadata, const Tokens& tokens) {
  const auto add = [&](std::string_view flag, std::string_view key) {
    return metadata.find_bool(flag).value_or(false) ? special_text(metadata, tokens, key)
                                                    : std::nullopt;
  };
  const auto bos = add("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id");
  const auto eos = add("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id");
  if (!bos && !eos) return nullptr;
  json::array single;
  json::array pair;
  json::object specials;
  const auto put = [&](json::array& list, std::string_view text, int type, std::string_view key) {
    list.push_back(
        json::object{{"SpecialToken", json::object{{"id", json_view(text)}, {"type_id", type}}}});
    specials[json_view(text)] = json::object{{"id", json_view(text)},
                                             {"ids", json::array{*metadata.find_uint(key)}},
                                             {"tokens", json::array{json_view(text)}}};
  };
  const auto sequence = [&](json::array& list, const char* id, int type) {
    if (bos) put(list, *bos, type, "tokenizer.ggml.bos_token_id");
    list.push_back(json::object{{"Sequence", json::object{{"id", id}, {"type_id", type}}}});
    if (eos) put(list, *eos, type, "tokenizer.ggml.eos_token_id");
  };
  sequence(single, "A", 0);
  sequence(pair, "A", 0);
  sequence(pair, "B", 1);
  return json::object{{"type", "TemplateProcessing"},
                      {"single", std::move(single)},
                      {"pair", std::move(pair)},
                      {"special_tokens", std::move(specials)}};
}

void add_sentencepiece_steps(json::object& tokenizer, bool space_prefix) {
  json::array normalizers;
  json::array decoders{replace_step(kSpace, " "), json::object{{"type", "ByteFallback"}},
                       json::object{{"type", "Fuse"}}};
  if (space_prefix) {
    normalizers.push_back(json::object{{"type", "Prepend"}, {"prepend", json_view(kSpace)}});
    decoders.push_back(
        json::object{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(replace_step(" ", kSpace));
  tokenizer["normalizer"] =
      json::object{{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  tokenizer["pre_tokenizer"] = nullptr;
  tokenizer["decoder"] = json::object{{"type", "Sequence"}, {"decoders", std::move(decoders)}};
}

json::object make_config(const Metadata& metadata, const Tokens& tokens) {
  json::object config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"clean_up_tokenization_spaces", false}};
  for (const auto& [name, key] : {std::pair("bos_token", "tokenizer.ggml.bos_token_id"),
                                  std::pair("eos_token", "tokenizer.ggml.eos_token_id"),
                                  std::pair("unk_token", "tokenizer.ggml.unknown_token_id"),
                                  std::pair("pad_token", "tokenizer.ggml.padding_token_id")}) {
    if (const auto text = special_text(metadata, tokens, key)) config[name] = json_view(*text);
  }
  for (const auto key : {"add_bos_token", "add_eos_token"}) {
    const auto flag = metadata.find_bool(fmt::format("tokenizer.ggml.{}", key));
    if (flag) config[key] = *flag;
  }
  return config;
}

void add_chat_templates(const Metadata& metadata, json::object& config) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  const std::string* main = metadata.find_string(kKey);
  json::array named;
  for (const Metadata::Entry& entry : metadata.entries()) {
    const auto* text = std::get_if<std::string>(&entry.value.value);
    if (text == nullptr || !entry.key.starts_with(fmt::format("{}.", kKey))) continue;
    named.push_back(
        json::object{{"name", json_view(std::string_view(entry.key).substr(kKey.size() + 1))},
                     {"template", json_view(*text)}});
  }
  if (named.empty()) {
    if (main != nullptr) config["chat_template"] = json_view(*main);
    return;
  }
  if (main != nullptr) {
    named.insert(named.begin(), json::object{{"name", "default"}, {"template", json_view(*main)}});
  }
  config["chat_template"] = std::move(named);
}

}  // namespace

Result<HfTokenizerFiles> metadata_to_tokenizer(const Metadata& metadata) {
  const std::string* kind = metadata.find_string("tokenizer.ggml.model");
  const auto* texts = metadata.find_strings("tokenizer.ggml.tokens");
  if (kind == nullptr || texts == nullptr || (*kind != "gpt2" && *kind != "llama")) {
    return fail(ErrorCode::kUnimplemented,
                "the tokenizer kind '{}' cannot be written as tokenizer.json",
                kind == nullptr ? "" : printable(*kind));
  }
  const Tokens tokens{*texts, metadata.find_ints("tokenizer.ggml.token_type")};
  const bool sentencepiece = *kind == "llama";
  json::object model{{"type", "BPE"},
                     {"dropout", nullptr},
                     {"unk_token", nullptr},
                     {"continuing_subword_prefix", nullptr},
                     {"end_of_word_suffix", nullptr},
                     {"fuse_unk", sentencepiece},
                     {"byte_fallback", sentencepiece}};
  HfTokenizerFiles files;
  json::object& tokenizer = files.tokenizer;
  tokenizer = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  tokenizer["added_tokens"] = make_added_tokens(metadata, tokens);
  if (sentencepiece) {
    const auto* scores = metadata.find_floats("tokenizer.ggml.scores");
    if (scores == nullptr || scores->size() != texts->size()) {
      return fail(ErrorCode::kDataLoss, "tokenizer.ggml.scores is missing or of another length");
    }
    add_sentencepiece_steps(tokenizer,
                            metadata.find_bool("tokenizer.ggml.add_space_prefix").value_or(true));
    if (const auto unknown = special_text(metadata, tokens, "tokenizer.ggml.unknown_token_id")) {
      model["unk_token"] = json_view(*unknown);
    }
    model["vocab"] = make_vocab(tokens);
    model["merges"] = make_merges(tokens, *scores);
  } else {
    const auto* merges = metadata.find_strings("tokenizer.ggml.merges");
    if (merges == nullptr) {
      return fail(ErrorCode::kDataLoss, "tokenizer.ggml.merges is missing");
    }
    const std::string* pre = metadata.find_string("tokenizer.ggml.pre");
    tokenizer["normalizer"] = nullptr;
    SPUD_TRY(tokenizer["pre_tokenizer"],
             make_pre_tokenizer(pre == nullptr ? std::string_view() : *pre));
    tokenizer["decoder"] = byte_level(true);
    model["ignore_merges"] = pre != nullptr && *pre == "llama-bpe";
    model["vocab"] = make_vocab(tokens);
    model["merges"] = json::array(merges->begin(), merges->end());
  }
  tokenizer["post_processor"] = make_post_processor(metadata, tokens);
  tokenizer["model"] = std::move(model);
  files.config = make_config(metadata, tokens);
  add_chat_templates(metadata, files.config);
  return files;
}

}  // namespace spud::formats
