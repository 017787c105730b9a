// SPDX-License-Identifier: Apache-2.0
// What the gates measured, bound to the bytes it was measured on. Travels in the artifact's
// metadata as `spud.certificate` (JSON) and names the digests of tensors, tokenizer, chat template
// and hyper-parameters, none of which include the certificate itself. No times, no host names: the
// same chain writes the same bytes. It is a seal against accidents and mix-ups, not a signature.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "formats/model_file.hpp"
#include "quality/gate.hpp"

namespace spud::quality {

inline constexpr std::string_view kCertificateKey = "spud.certificate";

struct CertificateStep {
  std::string step;         // "int4"
  std::string alternative;  // "mixed 4/8 bit"
  std::string verdict;      // "PASS", "FAIL", ..., "DECLINED"
  std::string reason;
};

struct CertificateDataset {
  std::string use;  // "validation", "hold-out", "calibration"
  std::string name;
  std::string digest;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
};

struct Certificate {
  int version = 1;
  std::string spud_version;
  std::string model_name;
  std::string tensor_digest;
  std::string tokenizer_digest;
  std::string chat_template_digest;
  std::string hyper_parameter_digest;
  std::string original_tensor_digest;
  Budget budget;
  std::vector<Finding> findings;  // of the accepted verdict
  std::vector<CertificateDataset> datasets;
  std::vector<CertificateStep> steps;
};

// SHA-256 (hex) over the metadata of the architecture (`general.architecture` and `{arch}.*`).
[[nodiscard]] std::string hyper_parameter_digest(const formats::Metadata& metadata);

// Fills the four digests from the file as reopened.
void bind(Certificate& certificate, const formats::ModelFile& file);

[[nodiscard]] std::string to_json(const Certificate& certificate);
[[nodiscard]] Result<Certificate> parse_certificate(std::string_view json);
// Sets kCertificateKey. Write the file again with it; the digests stay.
void attach(const Certificate& certificate, formats::Metadata& metadata);

enum class CertificateStatus { kCertified, kUncertified, kAltered };
std::string_view to_string(CertificateStatus status) noexcept;  // "certified", ...

struct CertificateCheck {
  CertificateStatus status = CertificateStatus::kUncertified;
  std::string reason;                      // one sentence
  std::optional<Certificate> certificate;  // when it could be parsed
};
// Reads all tensor bytes once.
[[nodiscard]] CertificateCheck check_certificate(const formats::ModelFile& file);

}  // namespace spud::quality
