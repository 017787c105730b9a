// SPDX-License-Identifier: Apache-2.0
#include "quality/certificate.hpp"

#include <boost/json.hpp>
#include <cmath>
#include <limits>

#include "base/sha256.hpp"
#include "formats/gguf.hpp"

namespace spud::quality {
namespace {

namespace json = boost::json;

// JSON has no infinity and no NaN: they become null, and null reads back as NaN.
json::value number(double value) {
  return std::isfinite(value) ? json::value(value) : json::value(nullptr);
}

json::value optional_number(const std::optional<double>& value) {
  return value ? number(*value) : json::value(nullptr);
}

double read_number(const json::value& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.to_number<double>();
}

std::optional<double> read_optional(const json::value& value) {
  return value.is_null() ? std::nullopt : std::optional(value.to_number<double>());
}

std::string text(const json::object& object, std::string_view key) {
  return std::string(object.at(key).as_string());
}

json::object budget_json(const Budget& budget) {
  json::array looks;
  for (const double look : budget.looks) looks.emplace_back(look);
  return {{"name", budget.name},
          {"ppl_ratio_max", optional_number(budget.ppl_ratio_max)},
          {"kld_mean_max", optional_number(budget.kld_mean_max)},
          {"top1_min", optional_number(budget.top1_min)},
          {"kld_p99_max", optional_number(budget.kld_p99_max)},
          {"mcq_drop_max", optional_number(budget.mcq_drop_max)},
          {"step_ppl_ratio_max", optional_number(budget.step_ppl_ratio_max)},
          {"alpha", budget.alpha},
          {"looks", std::move(looks)}};
}

Budget read_budget(const json::object& object) {
  Budget budget;
  budget.name = text(object, "name");
  budget.ppl_ratio_max = read_optional(object.at("ppl_ratio_max"));
  budget.kld_mean_max = read_optional(object.at("kld_mean_max"));
  budget.top1_min = read_optional(object.at("top1_min"));
  budget.kld_p99_max = read_optional(object.at("kld_p99_max"));
  budget.mcq_drop_max = read_optional(object.at("mcq_drop_max"));
  budget.step_ppl_ratio_max = read_optional(object.at("step_ppl_ratio_max"));
  budget.alpha = read_number(object.at("alpha"));
  budget.looks.clear();
  for (const json::value& look : object.at("looks").as_array()) {
    budget.looks.push_back(read_number(look));
  }
  return budget;
}

json::object finding_json(const Finding& f) {
  return {
      {"metric", f.metric},       {"against", f.against},           {"verdict", to_string(f.kind)},
      {"watched", f.watched},     {"estimate", number(f.estimate)}, {"lower", number(f.lower)},
      {"upper", number(f.upper)}, {"limit", number(f.limit)},       {"sentence", f.sentence}};
}

VerdictKind read_kind(std::string_view name) {
  for (const VerdictKind kind : {VerdictKind::kPass, VerdictKind::kFail, VerdictKind::kInconclusive,
                                 VerdictKind::kAnomalous}) {
    if (to_string(kind) == name) return kind;
  }
  throw std::invalid_argument(fmt::format("unknown verdict '{}'", name));
}

Finding read_finding(const json::object& object) {
  return {.metric = text(object, "metric"),
          .against = text(object, "against"),
          .kind = read_kind(text(object, "verdict")),
          .watched = object.at("watched").as_bool(),
          .estimate = read_number(object.at("estimate")),
          .lower = read_number(object.at("lower")),
          .upper = read_number(object.at("upper")),
          .limit = read_number(object.at("limit")),
          .sentence = text(object, "sentence")};
}

json::array datasets_json(const Certificate& certificate) {
  json::array out;
  for (const CertificateDataset& d : certificate.datasets) {
    out.push_back(json::object{{"use", d.use},
                               {"name", d.name},
                               {"digest", d.digest},
                               {"sequences", d.sequences},
                               {"tokens", d.tokens}});
  }
  return out;
}

json::array steps_json(const Certificate& certificate) {
  json::array out;
  for (const CertificateStep& s : certificate.steps) {
    out.push_back(json::object{{"step", s.step},
                               {"alternative", s.alternative},
                               {"verdict", s.verdict},
                               {"reason", s.reason}});
  }
  return out;
}

// Throws what Boost.JSON throws on a missing key or another type.
Certificate read_certificate(const json::object& object) {
  Certificate c;
  c.version = object.at("version").to_number<int>();
  c.spud_version = text(object, "spud_version");
  c.model_name = text(object, "model_name");
  c.tensor_digest = text(object, "tensor_digest");
  c.tokenizer_digest = text(object, "tokenizer_digest");
  c.chat_template_digest = text(object, "chat_template_digest");
  c.hyper_parameter_digest = text(object, "hyper_parameter_digest");
  c.original_tensor_digest = text(object, "original_tensor_digest");
  c.budget = read_budget(object.at("budget").as_object());
  for (const json::value& f : object.at("findings").as_array()) {
    c.findings.push_back(read_finding(f.as_object()));
  }
  for (const json::value& value : object.at("datasets").as_array()) {
    const json::object& d = value.as_object();
    c.datasets.push_back({text(d, "use"), text(d, "name"), text(d, "digest"),
                          d.at("sequences").to_number<std::int64_t>(),
                          d.at("tokens").to_number<std::int64_t>()});
  }
  for (const json::value& value : object.at("steps").as_array()) {
    const json::object& s = value.as_object();
    c.steps.push_back(
        {text(s, "step"), text(s, "alternative"), text(s, "verdict"), text(s, "reason")});
  }
  return c;
}

}  // namespace

std::string hyper_parameter_digest(const formats::Metadata& metadata) {
  const std::string* architecture = metadata.find_string("general.architecture");
  const std::string prefix = (architecture != nullptr ? *architecture : "") + ".";
  std::map<std::string_view, std::string> chosen;
  for (const formats::Metadata::Entry& entry : metadata.entries()) {
    if (entry.key != "general.architecture" && !entry.key.starts_with(prefix)) continue;
    formats::append_gguf_entry(chosen[entry.key], entry);
  }
  Sha256 hash;
  for (const auto& [key, bytes] : chosen) {
    const std::uint64_t size = bytes.size();
    hash.update(std::as_bytes(std::span(&size, 1)));
    hash.update(bytes);
  }
  return to_hex(hash.finish());
}

void bind(Certificate& certificate, const formats::ModelFile& file) {
  certificate.tensor_digest = formats::tensor_digest(file);
  certificate.tokenizer_digest = formats::tokenizer_digest(file.metadata());
  certificate.chat_template_digest = formats::chat_template_digest(file.metadata());
  certificate.hyper_parameter_digest = hyper_parameter_digest(file.metadata());
}

std::string to_json(const Certificate& c) {
  json::array findings;
  for (const Finding& f : c.findings) findings.push_back(finding_json(f));
  return json::serialize(json::object{{"version", c.version},
                                      {"spud_version", c.spud_version},
                                      {"model_name", c.model_name},
                                      {"tensor_digest", c.tensor_digest},
                                      {"tokenizer_digest", c.tokenizer_digest},
                                      {"chat_template_digest", c.chat_template_digest},
                                      {"hyper_parameter_digest", c.hyper_parameter_digest},
                                      {"original_tensor_digest", c.original_tensor_digest},
                                      {"budget", budget_json(c.budget)},
                                      {"findings", std::move(findings)},
                                      {"datasets", datasets_json(c)},
                                      {"steps", steps_json(c)}});
}

Result<Certificate> parse_certificate(std::string_view source) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(source.data(), source.size()), error);
  if (error || !value.is_object()) {
    return fail(ErrorCode::kDataLoss, "the certificate is not a JSON object");
  }
  const json::value* version = value.as_object().if_contains("version");
  if (version == nullptr || !version->is_int64() || version->as_int64() != 1) {
    return fail(ErrorCode::kUnimplemented,
                "the certificate has another version than 1; a newer spud may read it");
  }
  try {
    return read_certificate(value.as_object());
  } catch (const std::exception&) {
    return fail(ErrorCode::kDataLoss, "the certificate lacks a field or has one of another type");
  }
}

void attach(const Certificate& certificate, formats::Metadata& metadata) {
  metadata.set(kCertificateKey, formats::MetadataValue{to_json(certificate)});
}

std::string_view to_string(CertificateStatus status) noexcept {
  switch (status) {
    case CertificateStatus::kCertified:
      return "certified";
    case CertificateStatus::kUncertified:
      return "uncertified";
    case CertificateStatus::kAltered:
      return "altered";
  }
  return "uncertified";
}

CertificateCheck check_certificate(const formats::ModelFile& file) {
  const std::string* source = file.metadata().find_string(kCertificateKey);
  if (source == nullptr) {
    return {.status = CertificateStatus::kUncertified,
            .reason = "the file carries no certificate; 'spud shrink' writes one"};
  }
  auto parsed = parse_certificate(*source);
  if (!parsed) {
    return {.status = CertificateStatus::kAltered, .reason = parsed.error().message()};
  }
  Certificate actual;
  bind(actual, file);
  const struct {
    std::string_view what;
    const std::string& written;
    const std::string& found;
  } kSeals[] = {
      {"weights", parsed->tensor_digest, actual.tensor_digest},
      {"tokenizer", parsed->tokenizer_digest, actual.tokenizer_digest},
      {"chat template", parsed->chat_template_digest, actual.chat_template_digest},
      {"hyper-parameters", parsed->hyper_parameter_digest, actual.hyper_parameter_digest},
  };
  for (const auto& seal : kSeals) {
    if (seal.written == seal.found) continue;
    return {.status = CertificateStatus::kAltered,
            .reason = fmt::format("the {} changed after the certificate was written", seal.what),
            .certificate = std::move(*parsed)};
  }
  const std::string reason =
      fmt::format("every gate of budget '{}' was passed on these bytes", parsed->budget.name);
  return {
      .status = CertificateStatus::kCertified, .reason = reason, .certificate = std::move(*parsed)};
}

}  // namespace spud::quality
