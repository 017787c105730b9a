// SPDX-License-Identifier: Apache-2.0
// Recorded arrivals: when, how long the prompt, how long the answer. Two published layouts are
// read: Azure's CSV (TIMESTAMP,ContextTokens,GeneratedTokens) and Mooncake's JSON lines (timestamp
// in milliseconds, input_length, output_length).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spud::loadgen {

struct TraceEntry {
  double at_s = 0;  // since the first
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
};

inline constexpr std::size_t kMaxTraceEntries = 1 << 20;

// In order of time. kInvalidArgument names the line that is wrong.
[[nodiscard]] Result<std::vector<TraceEntry>> parse_trace(std::string_view text);
[[nodiscard]] Result<std::vector<TraceEntry>> read_trace(const std::filesystem::path& path);

}  // namespace spud::loadgen
