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

Result<void> check_time(std::string_view name, double value, double low) {
  if (value >= low && value <= EngineOptions::kMaxTimeMs) return {};
  return fail(ErrorCode::kInvalidArgument, "{} is {}; it must be between {} and {}", name, value,
              low, EngineOptions::kMaxTimeMs);
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
  SPUD_TRY(check("memory_bytes", memory_bytes, 0, INT64_MAX));
  SPUD_TRY(check("batch_size", batch_size, 1, kMaxSequences));
  SPUD_TRY(check_time("step_target_ms", step_target_ms, 0));
  SPUD_TRY(check_time("ageing_s", ageing_s, 0.001));
  SPUD_TRY(check_time("batch_wait_ms", batch_wait_ms, 0));
  return {};
}

}  // namespace spud::engine
