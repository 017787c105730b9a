// SPDX-License-Identifier: Apache-2.0
// The journal's field lists (json_archive.hpp). Used by the journal and by report.json; nobody else
// includes this.
#pragma once

#include <array>
#include <string_view>

#include "compress/journal.hpp"
#include "compress/json_archive.hpp"

namespace spud::quality {

inline std::array<std::string_view, 4> enum_names(VerdictKind) {
  return {"PASS", "FAIL", "INCONCLUSIVE", "ANOMALOUS"};
}

template <typename A>
void fields(A& a, Finding& f) {
  a("metric", f.metric);
  a("against", f.against);
  a("kind", f.kind);
  a("watched", f.watched);
  a("estimate", f.estimate);
  a("lower", f.lower);
  a("upper", f.upper);
  a("limit", f.limit);
  a("sentence", f.sentence);
}

template <typename A>
void fields(A& a, Verdict& v) {
  a("kind", v.kind);
  a("sentence", v.sentence);
  a("refusals", v.refusals);
  a("findings", v.findings);
  a("look", v.look);
  a("looks", v.looks);
  a("alpha_of_look", v.alpha_of_look);
  a("sequences", v.sequences);
  a("tokens", v.tokens);
}

}  // namespace spud::quality

namespace spud::compress {

inline std::array<std::string_view, 5> enum_names(AttemptState) {
  return {"written", "sound", "measured", "timed", "decided"};
}
inline std::array<std::string_view, 2> enum_names(Decision) { return {"accepted", "refused"}; }
inline std::array<std::string_view, 4> enum_names(StepStatus) {
  return {"pending", "accepted", "declined", "skipped"};
}

template <typename A>
void fields(A& a, RatioInterval& r) {
  a("estimate", r.estimate);
  a("lower", r.lower);
  a("upper", r.upper);
}

template <typename A>
void fields(A& a, SpeedComparison& s) {
  a("pairs", s.pairs);
  a("prefill_ratio", s.prefill);
  a("decode_ratio", s.decode);
  a("prefill_tokens_per_s", s.prefill_tokens_per_s);
  a("decode_tokens_per_s", s.decode_tokens_per_s);
  a("baseline_prefill_tokens_per_s", s.baseline_prefill_tokens_per_s);
  a("baseline_decode_tokens_per_s", s.baseline_decode_tokens_per_s);
}

template <typename A>
void fields(A& a, DataUse& d) {
  a("use", d.use);
  a("name", d.name);
  a("sha256", d.digest);
  a("sequences", d.sequences);
  a("tokens", d.tokens);
}

template <typename A>
void fields(A& a, Attempt& t) {
  a("alternative", t.alternative);
  a("attempt", t.attempt);
  a("state", t.state);
  a("file", t.file);
  a("bytes", t.bytes);
  a("tensor_digest", t.tensor_digest);
  a("expected_types", t.expected_types);
  a("note", t.note);
  a("worst_relative_error", t.worst_relative_error);
  a("verdict", t.verdict);
  a("perplexity", t.perplexity);
  a("perplexity_original", t.perplexity_original);
  a("speed", t.speed);
  a("peak_memory_bytes", t.peak_memory_bytes);
  a("decision", t.decision);
  a("stage", t.stage);
  a("reason", t.reason);
  a("seconds", t.seconds);
}

template <typename A>
void fields(A& a, StepRecord& s) {
  a("pass", s.pass);
  a("status", s.status);
  a("reason", s.reason);
  a("attempts", s.attempts);
}

template <typename A>
void fields(A& a, Accepted& s) {
  a("file", s.file);
  a("bytes", s.bytes);
  a("tensor_digest", s.tensor_digest);
  a("step", s.step);
  a("attempt", s.attempt);
}

template <typename A>
void fields(A& a, Journal& j) {
  a("source", j.source);
  a("source_digest", j.source_digest);
  a("recipe_name", j.recipe_name);
  a("recipe_digest", j.recipe_digest);
  a("spud_version", j.spud_version);
  a("model_name", j.model_name);
  a("source_types", j.source_types);
  a("dequantised", j.dequantised);
  a("original_file", j.original_file);
  a("original_digest", j.original_digest);
  a("original_bytes", j.original_bytes);
  a("data", j.data);
  a("environment", j.environment);
  a("power", j.power);
  a("instrument_checked", j.instrument_checked);
  a("speed_floor", j.speed_floor);
  a("original_perplexity", j.original_perplexity);
  a("original_memory_bytes", j.original_memory_bytes);
  a("steps", j.steps);
  a("accepted", j.accepted);
  a("holdout", j.holdout);
  a("holdout_perplexity", j.holdout_perplexity);
  a("holdout_perplexity_original", j.holdout_perplexity_original);
  a("artifact_sha256", j.artifact_digest);
  a("finished", j.finished);
  a("seconds", j.seconds);
}

}  // namespace spud::compress
