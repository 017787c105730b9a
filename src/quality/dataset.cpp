// SPDX-License-Identifier: Apache-2.0
#include "quality/dataset.hpp"

#include <cstring>
#include <set>

#include "base/sha256.hpp"
#include "quality/overlap.hpp"

namespace spud::quality {
namespace {

// Lengths go in front, so that no two different lists hash the same bytes.
void hash_text(Sha256& hash, std::string_view text) {
  const std::uint64_t size = text.size();
  hash.update(std::as_bytes(std::span(&size, 1)));
  hash.update(text);
}

void hash_tokens(Sha256& hash, std::span<const TokenId> tokens) {
  const std::uint64_t size = tokens.size();
  hash.update(std::as_bytes(std::span(&size, 1)));
  hash.update(std::as_bytes(tokens));
}

Result<void> check_ids(std::span<const Document> documents, std::span<const Question> questions) {
  std::set<std::string_view> ids;
  for (const Document& document : documents) {
    if (!ids.insert(document.id).second) {
      return fail(ErrorCode::kInvalidArgument,
                  "document id '{}' is used twice; every document needs its own", document.id);
    }
  }
  for (const Question& question : questions) {
    if (!ids.insert(question.id).second) {
      return fail(ErrorCode::kInvalidArgument,
                  "question id '{}' is used twice; every question needs its own", question.id);
    }
    if (question.choices.size() < 2 || question.answer >= question.choices.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  "question '{}' has {} choices and answer {}; it needs two or more choices and an "
                  "answer among them, counted from 0",
                  question.id, question.choices.size(), question.answer);
    }
  }
  return {};
}

Result<void> check_splits_apart(std::span<const Document> documents) {
  for (const auto& pair : internal::find_overlaps(documents)) {
    const Document& a = documents[pair.first];
    const Document& b = documents[pair.second];
    if (a.split == b.split) continue;
    return fail(ErrorCode::kInvalidArgument,
                "documents '{}' ({}) and '{}' ({}) share {} consecutive words; a text must stay in "
                "one split, or what was calibrated on is measured on",
                a.id, to_string(a.split), b.id, to_string(b.split), internal::kSharedRun);
  }
  return {};
}

std::string digest_of_split(std::span<const Document> documents,
                            std::span<const Question> questions, Split split) {
  Sha256 hash;
  for (const Document& document : documents) {
    if (document.split != split) continue;
    hash_text(hash, document.id);
    hash_text(hash, document.text);
    hash_tokens(hash, document.tokens);
  }
  for (const Question& question : questions) {
    if (question.split != split) continue;
    hash_text(hash, question.id);
    hash_text(hash, question.question);
    for (const std::string& choice : question.choices) hash_text(hash, choice);
    hash_text(hash, std::to_string(question.answer));
  }
  return to_hex(hash.finish());
}

}  // namespace

std::string_view to_string(Split split) noexcept {
  switch (split) {
    case Split::kCalibration:
      return "calibration";
    case Split::kValidation:
      return "validation";
    case Split::kHoldout:
      return "holdout";
  }
  return "validation";
}

Result<Dataset> Dataset::create(std::string name, std::vector<Document> documents,
                                std::vector<Question> questions) {
  SPUD_TRY(check_ids(documents, questions));
  SPUD_TRY(check_splits_apart(documents));
  Dataset dataset;
  dataset.name_ = std::move(name);
  dataset.documents_ = std::move(documents);
  dataset.questions_ = std::move(questions);
  for (const Split split : {Split::kCalibration, Split::kValidation, Split::kHoldout}) {
    dataset.digests_[static_cast<std::size_t>(split)] =
        digest_of_split(dataset.documents_, dataset.questions_, split);
  }
  return dataset;
}

std::vector<const Document*> Dataset::documents(Split split) const {
  std::vector<const Document*> chosen;
  for (const Document& document : documents_) {
    if (document.split == split) chosen.push_back(&document);
  }
  return chosen;
}

std::vector<const Question*> Dataset::questions(Split split) const {
  std::vector<const Question*> chosen;
  for (const Question& question : questions_) {
    if (question.split == split) chosen.push_back(&question);
  }
  return chosen;
}

std::int64_t SequenceSet::num_scored() const noexcept {
  std::int64_t sum = 0;
  for (const Sequence& sequence : sequences) sum += sequence.num_scored();
  return sum;
}

namespace {
Sha256Digest hash_sequences(std::span<const Sequence> sequences) {
  Sha256 hash;
  for (const Sequence& sequence : sequences) {
    hash_tokens(hash, sequence.tokens);
    hash.update(std::as_bytes(std::span(&sequence.first_scored, 1)));
  }
  return hash.finish();
}
}  // namespace

std::string digest_of(std::span<const Sequence> sequences) {
  return to_hex(hash_sequences(sequences));
}

std::uint64_t key_of(const Sequence& sequence) {
  const Sha256Digest digest = hash_sequences(std::span(&sequence, 1));
  std::uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof(key));
  return key;
}

}  // namespace spud::quality
