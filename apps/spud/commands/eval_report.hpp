// SPDX-License-Identifier: Apache-2.0
// What `spud eval` found, as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "quality/measurement.hpp"

namespace spud::app {

struct EvalReport {
  std::string model;
  std::string reference;  // "" = measured alone
  std::string data;       // "builtin validation, 55 documents"
  std::string data_digest;
  std::string unit;  // "windows" or "documents"
  double seconds = 0;
  quality::Measurement measurement;
  // The same with another type of keys and values; "" = not measured.
  std::string compared_kv_type;
  quality::Measurement compared;
  std::vector<quality::ChoiceResult> choices;
  std::vector<quality::ChoiceResult> reference_choices;
};

std::string to_json_text(const EvalReport& report);
std::string to_table_text(const EvalReport& report);

}  // namespace spud::app
