// SPDX-License-Identifier: Apache-2.0
// Where data sets come from: the program itself, JSONL and plain text files.
#include <boost/json.hpp>
#include <fstream>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/sha256.hpp"
#include "quality/dataset.hpp"
#include "quality/embedded_data.hpp"
#include "quality/overlap.hpp"

namespace spud::quality {
namespace {

namespace json = boost::json;

constexpr std::uintmax_t kMaxFileBytes = 256u << 20;
constexpr std::size_t kChunkBytes = 1200;

// One object a line; empty lines are skipped.
Result<std::vector<json::object>> parse_lines(std::string_view text) {
  std::vector<json::object> objects;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code error;
    json::value value = json::parse(json::string_view(line.data(), line.size()), error);
    if (error) {
      return fail(ErrorCode::kInvalidArgument, "line {}: not JSON ({})", line_number,
                  error.message());
    }
    if (!value.is_object()) {
      return fail(ErrorCode::kInvalidArgument, "line {}: expected a JSON object", line_number);
    }
    objects.push_back(std::move(value.as_object()));
  }
  return objects;
}

std::optional<std::string> text_field(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->as_string());
}

// "test" and "train" are what public sets call theirs.
Result<std::optional<Split>> split_field(const json::object& object) {
  const auto name = text_field(object, "split");
  if (!name) return std::optional<Split>();
  if (*name == "calibration" || *name == "train") return Split::kCalibration;
  if (*name == "validation") return Split::kValidation;
  if (*name == "holdout" || *name == "test") return Split::kHoldout;
  return fail(ErrorCode::kInvalidArgument,
              "split '{}' is unknown; use calibration, validation or holdout", *name);
}

struct Draft {
  Document document;
  bool has_split = false;
};

Result<Draft> document_from(const json::object& object, std::size_t number) {
  Draft draft;
  draft.document.id = text_field(object, "id").value_or(fmt::format("{}", number));
  draft.document.kind = text_field(object, "kind").value_or("");
  if (auto text = text_field(object, "text")) {
    draft.document.text = std::move(*text);
  } else if (const auto question = text_field(object, "question"),
             answer = text_field(object, "answer");
             question && answer) {
    draft.document.text = *question + "\n" + *answer + "\n";
  } else {
    return fail(ErrorCode::kInvalidArgument,
                "entry {}: needs \"text\", or \"question\" and \"answer\", as strings", number);
  }
  SPUD_TRY(const auto split, split_field(object));
  draft.has_split = split.has_value();
  draft.document.split = split.value_or(Split::kValidation);
  return draft;
}

Result<Question> question_from(const json::object& object, std::size_t number) {
  Question question;
  question.id = text_field(object, "id").value_or(fmt::format("question {}", number));
  question.question = text_field(object, "question").value_or("");
  SPUD_TRY(const auto split, split_field(object));
  question.split = split.value_or(Split::kValidation);
  const json::value* choices = object.if_contains("choices");
  const json::value* answer = object.if_contains("answer");
  if (choices == nullptr || !choices->is_array() || answer == nullptr || !answer->is_int64() ||
      answer->as_int64() < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "entry {}: needs \"choices\" (array of strings) and \"answer\" (index from 0)",
                number);
  }
  for (const json::value& choice : choices->as_array()) {
    if (!choice.is_string()) {
      return fail(ErrorCode::kInvalidArgument, "entry {}: every choice must be a string", number);
    }
    question.choices.emplace_back(choice.as_string());
  }
  question.answer = static_cast<std::size_t>(answer->as_int64());
  return question;
}

// Cut at blank lines into pieces of at least kChunkBytes; a piece without blank lines is cut at the
// next line end after four times that.
std::vector<Draft> cut_text(std::string_view text) {
  std::vector<Draft> drafts;
  while (!text.empty()) {
    std::size_t cut = text.find("\n\n", std::min(kChunkBytes, text.size()));
    if (cut == std::string_view::npos || cut > 4 * kChunkBytes) {
      cut = text.find('\n', std::min(4 * kChunkBytes, text.size()));
    }
    cut = std::min(cut, text.size());
    while (cut < text.size() && text[cut] == '\n') ++cut;
    Draft draft;
    draft.document.id = fmt::format("part {}", drafts.size() + 1);
    draft.document.text = std::string(text.substr(0, cut));
    drafts.push_back(std::move(draft));
    text.remove_prefix(cut);
  }
  return drafts;
}

// Gives a split to documents without one, by hash, so that the same text always gets the same one.
// Those that share a run of words are joined first (union-find) and get the split of the smallest.
void assign_splits(std::vector<Draft>& drafts) {
  std::vector<Document> documents;
  for (const Draft& draft : drafts) documents.push_back(draft.document);
  std::vector<std::size_t> parent(drafts.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&parent](std::size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (const auto& pair : internal::find_overlaps(documents)) {
    const std::size_t a = root(pair.first);
    const std::size_t b = root(pair.second);
    parent[std::max(a, b)] = std::min(a, b);
  }
  constexpr Split kBySlot[] = {Split::kValidation, Split::kHoldout, Split::kValidation,
                               Split::kCalibration};
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i].has_split) continue;
    const std::string& text = documents[root(i)].text;
    const auto digest = sha256(std::as_bytes(std::span(text)));
    drafts[i].document.split = kBySlot[std::to_integer<unsigned>(digest[0]) & 3U];
  }
}

Result<std::string> read_text(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return fail(ErrorCode::kNotFound, "cannot read '{}': {}", path.string(), error.message());
  }
  if (size > kMaxFileBytes) {
    return fail(ErrorCode::kInvalidArgument,
                "'{}' has {} bytes; evaluation text may have at most {}; cut it", path.string(),
                size, kMaxFileBytes);
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || text.str().size() != size) {
    return fail(ErrorCode::kDataLoss, "cannot read all of '{}'", path.string());
  }
  return std::move(text).str();
}

Result<Dataset> from_jsonl(std::string name, std::string_view text) {
  SPUD_TRY(const auto objects, parse_lines(text));
  std::vector<Draft> drafts;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].contains("choices")) {
      SPUD_TRY(auto question, question_from(objects[i], i + 1));
      questions.push_back(std::move(question));
    } else {
      SPUD_TRY(auto draft, document_from(objects[i], i + 1));
      drafts.push_back(std::move(draft));
    }
  }
  assign_splits(drafts);
  std::vector<Document> documents;
  for (Draft& draft : drafts) documents.push_back(std::move(draft.document));
  return Dataset::create(std::move(name), std::move(documents), std::move(questions));
}

}  // namespace

Result<Dataset> Dataset::builtin() {
  std::string all(internal::embedded_text());
  all += '\n';
  all += internal::embedded_choices();
  auto dataset = from_jsonl("builtin", all);
  if (!dataset) return fail_within("built-in data set", std::move(dataset).error());
  return dataset;
}

Result<Dataset> Dataset::load(const std::filesystem::path& file) {
  SPUD_TRY(const std::string text, read_text(file));
  const std::string name = file.filename().string();
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is empty; it must hold text", file.string());
  }
  if (file.extension() == ".jsonl" || file.extension() == ".json" || text[first] == '{') {
    auto dataset = from_jsonl(name, text);
    if (!dataset) return fail_within(file.string(), std::move(dataset).error());
    return dataset;
  }
  std::vector<Draft> drafts = cut_text(text);
  assign_splits(drafts);
  std::vector<Document> documents;
  for (Draft& draft : drafts) documents.push_back(std::move(draft.document));
  return create(name, std::move(documents));
}

}  // namespace spud::quality
