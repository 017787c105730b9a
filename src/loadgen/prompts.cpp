// SPDX-License-Identifier: Apache-2.0
#include "loadgen/prompts.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <iterator>
#include <random>

namespace spud::loadgen {
namespace {

using Random = std::mt19937_64;

// All prompts of all runs begin with the same words where they share a prefix.
constexpr std::uint64_t kPrefixSeed = 0x5eed'0f'0e'11ULL;

// One token each in the vocabularies we know, with the space before them.
constexpr std::string_view kWords[] = {
    "the",   "of",    "and",    "time",  "water", "people", "day",   "light",  "world",  "house",
    "river", "night", "stone",  "paper", "music", "city",   "green", "small",  "great",  "under",
    "after", "when",  "where",  "which", "their", "first",  "long",  "hand",   "place",  "year",
    "work",  "life",  "school", "still", "story", "money",  "point", "home",   "room",   "mother",
    "area",  "week",  "book",   "word",  "issue", "side",   "kind",  "head",   "hour",   "game",
    "line",  "end",   "member", "law",   "car",   "name",   "team",  "minute", "idea",   "body",
    "back",  "face",  "level",  "door",  "art",   "war",    "party", "result", "change", "morning"};

std::string_view draw_word(Random& random) { return kWords[random() % std::size(kWords)]; }

void add_words(std::string& out, std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!out.empty()) out += ' ';
    out += draw_word(random);
  }
}

void add_tokens(std::string& out, const std::vector<std::int32_t>& pool, std::int64_t count,
                std::uint64_t seed) {
  Random random(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    if (out.back() != '[') out += ',';
    fmt::format_to(std::back_inserter(out), "{}", pool[random() % pool.size()]);
  }
}

std::string json_string(const std::string& text) {
  return boost::json::serialize(boost::json::value(text));
}

}  // namespace

std::string sample_text(std::size_t words, std::uint64_t seed) {
  std::string text;
  add_words(text, static_cast<std::int64_t>(words), seed);
  return text;
}

std::string_view PromptMaker::path() const noexcept {
  return options_.form == PromptForm::kChat ? "/v1/chat/completions" : "/v1/completions";
}

std::string PromptMaker::body(const Planned& planned, std::int64_t shared_prefix) const {
  std::string body = "{";
  if (!options_.model.empty()) body += fmt::format("\"model\":{},", json_string(options_.model));
  std::string prefix;
  switch (options_.form) {
    case PromptForm::kTokens:
      body += "\"prompt\":[";
      add_tokens(body, options_.token_pool, shared_prefix, kPrefixSeed);
      add_tokens(body, options_.token_pool, planned.prompt_tokens, planned.seed);
      body += "],";
      break;
    case PromptForm::kText:
      add_words(prefix, shared_prefix, kPrefixSeed);
      add_words(prefix, planned.prompt_tokens, planned.seed);
      body += fmt::format("\"prompt\":{},", json_string(prefix));
      break;
    case PromptForm::kChat: {
      std::string words;
      add_words(words, planned.prompt_tokens, planned.seed);
      add_words(prefix, shared_prefix, kPrefixSeed);
      body += "\"messages\":[";
      if (!prefix.empty()) {
        body += fmt::format(R"({{"role":"system","content":{}}},)", json_string(prefix));
      }
      body += fmt::format(R"({{"role":"user","content":{}}}],)", json_string(words));
      break;
    }
  }
  if (options_.ignore_eos) body += "\"ignore_eos\":true,";
  body += fmt::format(
      R"("max_tokens":{},"temperature":{},"stream":true,"stream_options":{{"include_usage":true}}}})",
      planned.output_tokens, options_.temperature);
  return body;
}

}  // namespace spud::loadgen
