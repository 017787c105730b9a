// SPDX-License-Identifier: Apache-2.0
// The table of architectures. To add one: a file in arch/ with one function that fills in a
// DecoderSpec, its declaration in arch/arch.hpp, and one line in architectures.cpp.
#pragma once

#include <span>
#include <string_view>

#include "base/result.hpp"
#include "formats/model_file.hpp"
#include "model/decoder_spec.hpp"

namespace spud::model {

enum class Maturity : std::uint8_t { kAlpha, kStable };

struct Architecture {
  std::string_view name;  // "general.architecture"
  std::string_view summary;
  Maturity maturity = Maturity::kAlpha;
  // Hyper-parameters and block options from the metadata, checked for consistency.
  Result<DecoderSpec> (*describe)(const formats::ModelFile& file) = nullptr;
};

std::span<const Architecture> builtin_architectures() noexcept;

}  // namespace spud::model
