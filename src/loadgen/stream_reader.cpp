// SPDX-License-Identifier: Apache-2.0
#include "loadgen/stream_reader.hpp"

#include <boost/json.hpp>

namespace spud::loadgen {
namespace {

namespace json = boost::json;

// The event holds `"name":"x...` with x not the closing quote: text that is not empty.
bool has_text(std::string_view data, std::string_view name) {
  for (auto at = data.find(name); at != std::string_view::npos; at = data.find(name, at + 1)) {
    std::string_view rest = data.substr(at + name.size());
    if (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.size() >= 2 && rest[0] == '"' && rest[1] != '"') return true;
  }
  return false;
}

// Anything a chunk of text does not have: counts, or an error.
bool needs_parsing(std::string_view data) {
  return data.find("\"usage\":{") != std::string_view::npos ||
         data.find("\"usage\": {") != std::string_view::npos ||
         data.find("\"error\"") != std::string_view::npos;
}

std::int64_t find_count(const json::object& object, std::string_view name) {
  const json::value* number = object.if_contains(name);
  return number != nullptr && number->is_int64() ? number->get_int64() : 0;
}

}  // namespace

bool StreamReader::push(std::string_view bytes, Nanoseconds now) {
  const auto parsed = parser_.push(
      bytes, [this, now](const http::SseEvent& event) { take_event(event.data, now); });
  if (!parsed) fail_with(OutcomeKind::kBroken, parsed.error().message());
  return !failed_;
}

void StreamReader::take_event(std::string_view data, Nanoseconds now) {
  if (failed_) return;
  if (data == "[DONE]") {
    saw_end_ = true;
    return;
  }
  if (needs_parsing(data)) take_json(data, now);
  if (has_text(data, "\"content\":") || has_text(data, "\"text\":")) take_text(now);
}

void StreamReader::take_text(Nanoseconds now) {
  if (text_events_++ == 0) {
    outcome_.first_text = now;
  } else {
    outcome_.longest_gap = std::max(outcome_.longest_gap, now - outcome_.last_text);
  }
  outcome_.last_text = now;
}

void StreamReader::take_json(std::string_view data, Nanoseconds) {
  json::error_code failed;
  const json::value value = json::parse(data, failed);
  const json::object* object = failed ? nullptr : value.if_object();
  if (object == nullptr) {
    fail_with(OutcomeKind::kBroken, "an event is not JSON");
    return;
  }
  if (const json::value* error = object->if_contains("error"); error != nullptr) {
    fail_with(OutcomeKind::kServerError, json::serialize(*error));
    return;
  }
  const json::value* usage = object->if_contains("usage");
  if (usage == nullptr || !usage->is_object()) return;
  saw_usage_ = true;
  const json::object& counts = usage->get_object();
  outcome_.prompt_tokens = find_count(counts, "prompt_tokens");
  outcome_.output_tokens = find_count(counts, "completion_tokens");
  const json::value* details = counts.if_contains("prompt_tokens_details");
  if (details != nullptr && details->is_object()) {
    outcome_.cached_tokens = find_count(details->get_object(), "cached_tokens");
  }
}

void StreamReader::fail_with(OutcomeKind kind, std::string message) {
  if (failed_) return;
  failed_ = true;
  outcome_.kind = kind;
  message_ = std::move(message);
}

void StreamReader::finish(Nanoseconds now) {
  outcome_.ended = now;
  if (failed_) return;
  if (!saw_end_ || text_events_ == 0) {
    fail_with(OutcomeKind::kBroken,
              saw_end_ ? "the answer has no text" : "the stream ended without [DONE]");
    return;
  }
  // A server that does not count: every event with text is taken for a token.
  if (!saw_usage_) outcome_.output_tokens = text_events_;
  outcome_.kind = OutcomeKind::kOk;
}

}  // namespace spud::loadgen
