// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_options.hpp"

#include <string_view>

namespace spud::engine {
namespace {

Result<void> check(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(ErrorCode::kInvalidArgument, "{} is {}; it must be between {} and {}", name, value,
              low, high);
}

}  // namespace

Result<void> EngineOptions::validate() const {
  SPUD_TRY(check("context", context, 0, kMaxContext));
  SPUD_TRY(check("max_sequences", max_sequences, 1, kMaxSequences));
  SPUD_TRY(check("max_queue", max_queue, 1, kMaxQueue));
  SPUD_TRY(check("kv_memory_bytes", kv_memory_bytes, 0, INT64_MAX));
  SPUD_TRY(kvcache::parse_kv_type(kv_type));
  SPUD_TRY(check("step_rows", step_rows, kMinStepRows, kMaxStepRows));
  SPUD_TRY(check("threads", threads, 0, kMaxThreads));
  return {};
}

}  // namespace spud::engine
