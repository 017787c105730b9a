// SPDX-License-Identifier: Apache-2.0
// Latency limits as a person writes them: "ttft=500ms,tpot=50ms,e2e=10s".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "loadgen/outcome.hpp"

namespace spud::loadgen {

struct Slo {
  std::optional<Nanoseconds> ttft;  // time to first token
  std::optional<Nanoseconds> tpot;  // time per output token
  std::optional<Nanoseconds> e2e;   // the whole answer

  bool empty() const noexcept { return !ttft && !tpot && !e2e; }
  bool met_by(const Outcome& outcome) const noexcept;
};

[[nodiscard]] Result<Slo> parse_slo(std::string_view text);
// "500ms", "1.5s", "2min", "250us".
[[nodiscard]] Result<Nanoseconds> parse_duration(std::string_view text);
std::string to_string(const Slo& slo);

}  // namespace spud::loadgen
