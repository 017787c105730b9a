// SPDX-License-Identifier: Apache-2.0
// What the engine may use: places, memory, threads. One field list gives flags, YAML and schema.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "config/field_visitor.hpp"
#include "kvcache/kv_type.hpp"

namespace spud::engine {

struct EngineOptions {
  static constexpr std::int64_t kMaxContext = 1 << 24;
  static constexpr std::int64_t kMaxSequences = 1024;
  static constexpr std::int64_t kMaxQueue = 1 << 20;
  static constexpr std::int64_t kMinStepRows = 16;
  static constexpr std::int64_t kMaxStepRows = 1 << 16;
  static constexpr std::int64_t kMaxThreads = 1024;

  std::int64_t context = 0;          // 0 = the model's
  std::int64_t max_sequences = 32;   // running at a time
  std::int64_t max_queue = 256;      // accepted, not yet running
  std::int64_t kv_memory_bytes = 0;  // 0 = max_sequences full contexts, at most half of the memory
  std::string kv_type = kernels::to_string(kernels::kDefaultKvType);
  std::int64_t step_rows = 256;  // rows of one step
  std::int64_t threads = 0;      // 0 = from the CPU budget
  bool prefix_cache = true;

  void visit_fields(config::FieldVisitor& visitor) {
    visitor.field({.name = "context",
                   .help = "Longest prompt and answer together, in tokens; 0 = the model's",
                   .min = 0,
                   .max = kMaxContext},
                  context);
    visitor.field({.name = "max_sequences",
                   .help = "Generations that run at the same time",
                   .min = 1,
                   .max = kMaxSequences},
                  max_sequences);
    visitor.field({.name = "max_queue",
                   .help = "Generations that may wait; more are refused with 429",
                   .min = 1,
                   .max = kMaxQueue},
                  max_queue);
    visitor.field({.name = "kv_memory_bytes",
                   .help = "Memory for keys and values, in bytes; 0 = all sequences at full "
                           "context, at most half of the memory there is",
                   .min = 0},
                  kv_memory_bytes);
    visitor.field({.name = "kv_type",
                   .help = "Type of stored keys and values: int8, or f16 at twice the memory",
                   .choices = kvcache::kv_type_names()},
                  kv_type);
    visitor.field({.name = "step_rows",
                   .help = "Tokens computed in one step: running generations first, then prompts",
                   .min = kMinStepRows,
                   .max = kMaxStepRows},
                  step_rows);
    visitor.field({.name = "threads",
                   .help = "Threads that compute; 0 = as many as CPU affinity and quota allow",
                   .min = 0,
                   .max = kMaxThreads},
                  threads);
    visitor.field({.name = "prefix_cache",
                   .help = "Keep computed prompts in free KV memory and use them again"},
                  prefix_cache);
  }
  // The ranges above, for options that did not come through the config reader.
  [[nodiscard]] Result<void> validate() const;
};

}  // namespace spud::engine
