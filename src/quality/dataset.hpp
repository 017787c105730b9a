// SPDX-License-Identifier: Apache-2.0
// The text that quality is measured on. Three splits that never mix: calibration (what passes may
// look at), validation (what gates decide on, many times) and hold-out (used once, at the end).
// Sources: "builtin" (written for this project, inside the program), a file, and "self" (sampled
// from the reference model). Loading refuses splits that share a run of 13 words. Everything that
// is measured carries a SHA-256, so that two measurements on different data can not be compared.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/tokenizer.hpp"

namespace spud::quality {

using tokenizer::TokenId;

enum class Split { kCalibration, kValidation, kHoldout };
std::string_view to_string(Split split) noexcept;

struct Document {
  std::string id;
  std::string kind;  // "prose", "code", ...: names the domain, "" when unknown
  Split split = Split::kValidation;
  std::string text;
  std::vector<TokenId> tokens;  // only of "self": as sampled, `text` is empty
};

struct Question {
  std::string id;
  Split split = Split::kValidation;
  std::string question;
  std::vector<std::string> choices;  // two or more
  std::size_t answer = 0;            // index of the right choice
};

// Immutable once made.
class Dataset {
 public:
  [[nodiscard]] static Result<Dataset> builtin();
  // Plain text (cut at blank lines into documents of about 1,200 bytes) or JSONL: one object a line
  // with "text", or "question" and "answer" (joined); optional "id", "kind", "split". Documents
  // without a split get one by hash, those that share 13 words always the same one.
  [[nodiscard]] static Result<Dataset> load(const std::filesystem::path& file);
  // kInvalidArgument when two splits share 13 consecutive words (names both documents), or when an
  // id is used twice.
  [[nodiscard]] static Result<Dataset> create(std::string name, std::vector<Document> documents,
                                              std::vector<Question> questions = {});

  const std::string& name() const noexcept { return name_; }
  std::vector<const Document*> documents(Split split) const;
  std::vector<const Question*> questions(Split split) const;
  // SHA-256 (hex) over the split's documents and questions.
  const std::string& digest(Split split) const noexcept {
    return digests_[static_cast<std::size_t>(split)];
  }

 private:
  std::string name_;
  std::vector<Document> documents_;
  std::vector<Question> questions_;
  std::array<std::string, 3> digests_;
};

// One stretch of tokens that is scored as a whole; the unit of resampling (cluster).
struct Sequence {
  std::string id;
  std::vector<TokenId> tokens;
  // Logits at positions first_scored .. tokens.size() - 2 are compared; each predicts the next
  // token.
  std::int64_t first_scored = 0;
  std::int64_t num_scored() const noexcept {
    const auto n = static_cast<std::int64_t>(tokens.size()) - 1 - first_scored;
    return n > 0 ? n : 0;
  }
};

struct SequenceSet {
  std::string source;  // "builtin validation"
  std::vector<Sequence> sequences;
  std::string digest;  // SHA-256 over tokens and first_scored of all sequences, in order
  std::int64_t num_scored() const noexcept;
};
std::string digest_of(std::span<const Sequence> sequences);
std::uint64_t key_of(const Sequence& sequence);  // the first 8 bytes of its digest

struct DocumentOptions {
  std::int64_t max_tokens = 256;  // longer documents are cut here
  std::int64_t unscored = 8;      // the first predictions of a text say little about the model
  std::int64_t min_scored = 16;   // shorter documents are left out
  std::uint64_t shuffle_seed = 20261130;  // order of drawing: never "the first N of the file"
};
// The documents of a split as sequences, in a fixed random order that takes the kinds in turn.
[[nodiscard]] Result<SequenceSet> make_document_sequences(const Dataset& dataset, Split split,
                                                          const tokenizer::Tokenizer& tokenizer,
                                                          const DocumentOptions& options = {});

struct WindowOptions {
  std::int64_t window = 512;
  std::int64_t max_windows = 0;  // 0 = all whole windows
};
// llama-perplexity's protocol: the text as one token stream in windows, scored on the second half
// (predictions at positions window/2 .. window - 2). Where the tokenizer adds BOS, it replaces the
// first token of every window.
[[nodiscard]] Result<SequenceSet> make_windows(std::string_view text, std::string source,
                                               const tokenizer::Tokenizer& tokenizer,
                                               const WindowOptions& options);

// What "self" needs of a model: whole sampled sequences (temperature 1).
class TextSampler {
 public:
  virtual ~TextSampler() = default;
  // `count` sequences of at most `max_tokens`, the same for the same seed.
  [[nodiscard]] virtual Result<std::vector<std::vector<TokenId>>> sample(std::int64_t count,
                                                                         std::int64_t max_tokens,
                                                                         std::uint64_t seed) = 0;
};
// Splits as the built-in set: half validation, a quarter each calibration and hold-out. A sample
// that shares 13 tokens with one of another split is left out.
[[nodiscard]] Result<Dataset> sample_dataset(TextSampler& sampler, std::int64_t count,
                                             std::int64_t max_tokens, std::uint64_t seed);

}  // namespace spud::quality
