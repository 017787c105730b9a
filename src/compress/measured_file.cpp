// SPDX-License-Identifier: Apache-2.0
// A measurement on disk. Doubles are hexadecimal text: a resumed chain must compute the very same
// intervals as an uninterrupted one, and decimal JSON may come back one unit in the last place off.
#include <charconv>

#include "base/json_text.hpp"
#include "compress/journal.hpp"
#include "compress/json_archive.hpp"

namespace spud::compress {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

template <typename T>
std::string hex_text(T number) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::hex).ptr;
  return {buffer, end};
}

template <typename T>
T parse_hex(std::string_view text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, number, std::chars_format::hex);
  if (code != std::errc{} || at != end) {
    throw std::runtime_error(fmt::format("'{}' is no hexadecimal number", text));
  }
  return number;
}

// Values separated by spaces: one string instead of thousands.
template <typename T>
std::string join_hex(const std::vector<T>& numbers) {
  std::string text;
  for (const T number : numbers) {
    if (!text.empty()) text += ' ';
    text += hex_text(number);
  }
  return text;
}

template <typename T>
std::vector<T> split_hex(std::string_view text) {
  std::vector<T> numbers;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    numbers.push_back(parse_hex<T>(text.substr(0, space)));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return numbers;
}

value sequences_json(const std::vector<quality::SequenceMeasure>& sequences) {
  array rows;
  for (const auto& s : sequences) {
    rows.push_back(array{s.key, s.tokens,
                         value(join_hex<double>({s.nll_reference, s.nll_candidate, s.kld})),
                         s.top1_same});
  }
  return rows;
}

quality::SequenceMeasure parse_sequence(const array& row) {
  const auto sums = split_hex<double>(std::string_view(row.at(2).as_string()));
  if (sums.size() != 3) throw std::runtime_error("a sequence needs three sums");
  return {.key = row.at(0).to_number<std::uint64_t>(),
          .tokens = row.at(1).to_number<std::int64_t>(),
          .nll_reference = sums[0],
          .nll_candidate = sums[1],
          .kld = sums[2],
          .top1_same = row.at(3).to_number<std::int64_t>()};
}

Measured from_json(const object& json) {
  const auto text = [&](std::string_view key) { return std::string(json.at(key).as_string()); };
  Measured measured;
  auto& m = measured.measurement;
  m.sequences_digest = text("sequences_digest");
  m.reference_digest = text("reference_digest");
  m.candidate_digest = text("candidate_digest");
  m.tokenizer_digest = text("tokenizer_digest");
  for (const auto& row : json.at("sequences").as_array()) {
    m.sequences.push_back(parse_sequence(row.as_array()));
  }
  m.token_kld = split_hex<float>(text("token_kld"));
  for (const auto& row : json.at("choices").as_array()) {
    const auto& c = row.as_array();
    measured.choices.push_back({.question_id = std::string(c.at(0).as_string()),
                                .correct = c.at(1).as_bool(),
                                .correct_normalised = c.at(2).as_bool(),
                                .picked = c.at(3).to_number<std::size_t>()});
  }
  measured.look = json.at("look").to_number<std::size_t>();
  return measured;
}

}  // namespace

std::string to_json(const Measured& measured) {
  const auto& m = measured.measurement;
  array choices;
  for (const auto& c : measured.choices) {
    choices.push_back(array{value(c.question_id), c.correct, c.correct_normalised, c.picked});
  }
  return pretty_json(object{{"sequences_digest", m.sequences_digest},
                            {"reference_digest", m.reference_digest},
                            {"candidate_digest", m.candidate_digest},
                            {"tokenizer_digest", m.tokenizer_digest},
                            {"sequences", sequences_json(m.sequences)},
                            {"token_kld", join_hex(m.token_kld)},
                            {"choices", std::move(choices)},
                            {"look", measured.look}});
}

Result<Measured> parse_measured(std::string_view json) {
  try {
    return from_json(boost::json::parse(json).as_object());
  } catch (const std::exception& e) {
    return fail(ErrorCode::kDataLoss, "a measurement cannot be read: {}", e.what());
  }
}

}  // namespace spud::compress
