// SPDX-License-Identifier: Apache-2.0
// From documents to the token sequences that are scored.
#include <algorithm>
#include <map>
#include <random>

#include "quality/dataset.hpp"
#include "quality/overlap.hpp"

namespace spud::quality {
namespace {

// A fixed shuffle (Fisher-Yates with our own index draw: std::shuffle differs between libraries).
template <typename T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    const auto j = static_cast<std::size_t>((static_cast<unsigned __int128>(random()) * i) >> 64);
    std::swap(items[i - 1], items[j]);
  }
}

// Kinds take turns, so that any number of sequences from the front covers them all.
std::vector<const Document*> drawing_order(std::vector<const Document*> documents,
                                           std::uint64_t seed) {
  std::map<std::string_view, std::vector<const Document*>> by_kind;
  for (const Document* document : documents) by_kind[document->kind].push_back(document);
  std::mt19937_64 random(seed);
  for (auto& [kind, group] : by_kind) shuffle(group, random);
  std::vector<const Document*> order;
  for (std::size_t round = 0; order.size() < documents.size(); ++round) {
    for (const auto& [kind, group] : by_kind) {
      if (round < group.size()) order.push_back(group[round]);
    }
  }
  return order;
}

}  // namespace

Result<SequenceSet> make_document_sequences(const Dataset& dataset, Split split,
                                            const tokenizer::Tokenizer& tokenizer,
                                            const DocumentOptions& options) {
  SequenceSet set;
  set.source = fmt::format("{} {}", dataset.name(), to_string(split));
  for (const Document* document : drawing_order(dataset.documents(split), options.shuffle_seed)) {
    Sequence sequence{
        .id = document->id, .tokens = document->tokens, .first_scored = options.unscored};
    if (!document->text.empty()) {
      auto tokens = tokenizer.encode(document->text, {.add_special = true});
      if (!tokens) return fail_within(document->id, std::move(tokens).error());
      sequence.tokens = std::move(*tokens);
    }
    if (static_cast<std::int64_t>(sequence.tokens.size()) > options.max_tokens) {
      sequence.tokens.resize(static_cast<std::size_t>(options.max_tokens));
    }
    if (sequence.num_scored() < options.min_scored) continue;
    set.sequences.push_back(std::move(sequence));
  }
  if (set.sequences.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' has no document of at least {} tokens in its {} split; give more text",
                dataset.name(), options.unscored + options.min_scored + 1, to_string(split));
  }
  set.digest = digest_of(set.sequences);
  return set;
}

Result<SequenceSet> make_windows(std::string_view text, std::string source,
                                 const tokenizer::Tokenizer& tokenizer,
                                 const WindowOptions& options) {
  if (options.window < 4) {
    return fail(ErrorCode::kInvalidArgument, "a window of {} tokens is too short; use 4 or more",
                options.window);
  }
  SPUD_TRY(const auto tokens, tokenizer.encode(text, {.add_special = true}));
  const auto window = static_cast<std::size_t>(options.window);
  std::size_t count = tokens.size() / window;
  if (options.max_windows > 0)
    count = std::min(count, static_cast<std::size_t>(options.max_windows));
  if (count == 0) {
    return fail(ErrorCode::kInvalidArgument,
                "the text has {} tokens, less than one window of {}; give more text or a smaller "
                "window",
                tokens.size(), options.window);
  }
  SequenceSet set{.source = std::move(source)};
  for (std::size_t w = 0; w < count; ++w) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(w * window);
    Sequence sequence{.id = fmt::format("window {}", w + 1),
                      .tokens = {begin, begin + options.window},
                      .first_scored = options.window / 2};
    if (tokenizer.adds_bos() && tokenizer.bos()) sequence.tokens.front() = *tokenizer.bos();
    set.sequences.push_back(std::move(sequence));
  }
  set.digest = digest_of(set.sequences);
  return set;
}

Result<Dataset> sample_dataset(TextSampler& sampler, std::int64_t count, std::int64_t max_tokens,
                               std::uint64_t seed) {
  SPUD_TRY(auto samples, sampler.sample(count, max_tokens, seed));
  constexpr Split kInTurn[] = {Split::kValidation, Split::kHoldout, Split::kValidation,
                               Split::kCalibration};
  std::vector<Document> documents;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    documents.push_back({.id = fmt::format("sample {}", i + 1),
                         .kind = "sampled",
                         .split = kInTurn[i % 4],
                         .tokens = std::move(samples[i])});
  }
  std::vector<bool> dropped(documents.size(), false);
  for (const auto& pair : internal::find_overlaps(documents)) {
    if (documents[pair.first].split != documents[pair.second].split) dropped[pair.second] = true;
  }
  std::vector<Document> kept;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (!dropped[i]) kept.push_back(std::move(documents[i]));
  }
  return Dataset::create(fmt::format("self (seed {})", seed), std::move(kept));
}

}  // namespace spud::quality
