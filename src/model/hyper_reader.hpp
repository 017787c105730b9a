// SPDX-License-Identifier: Apache-2.0
// Reads hyper-parameters from metadata that may be anything: each value is checked against what
// it can sensibly be, and against the others, before a size is computed from it. Errors name the
// key, the value and the limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "formats/model_file.hpp"
#include "model/decoder_spec.hpp"

namespace spud::model {

// Keys are given without the architecture: "attention.head_count". Looks at the file only.
class HyperReader {
 public:
  explicit HyperReader(const formats::ModelFile& file);

  bool has(std::string_view key) const noexcept;
  // 1 .. limit. An array (one value per layer) is accepted when all its values are equal.
  [[nodiscard]] Result<std::int64_t> count(std::string_view key, std::int64_t limit) const;
  [[nodiscard]] Result<std::int64_t> count_or(std::string_view key, std::int64_t limit,
                                              std::int64_t fallback) const;
  // Finite and more than zero.
  [[nodiscard]] Result<double> positive(std::string_view key) const;
  [[nodiscard]] Result<double> positive_or(std::string_view key, double fallback) const;
  // Zero or absent means none.
  [[nodiscard]] Result<double> optional_positive(std::string_view key) const;

  std::string full_key(std::string_view key) const;
  const formats::ModelFile& file() const noexcept { return *file_; }

 private:
  const formats::ModelFile* file_;
  std::string prefix_;
};

// What all architectures share: sizes, epsilon, one rope (with `interleaved` as given) for all
// layers, no window, scale 1/sqrt(head_dim). Refuses experts, uneven heads, unknown rope scaling.
[[nodiscard]] Result<DecoderSpec> describe_common(const HyperReader& reader, bool interleaved);

}  // namespace spud::model
