// SPDX-License-Identifier: Apache-2.0
// What the engine may use: places, memory, threads. One field list gives flags, YAML and schema.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "config/field_visitor.hpp"
#include "kvcache/kv_type.hpp"
#include "scheduler/policies.hpp"

namespace spud::engine {

struct EngineOptions {
  static constexpr std::int64_t kMaxContext = 1 << 24;
  static constexpr std::int64_t kMaxSequences = 1024;
  static constexpr std::int64_t kMaxQueue = 1 << 20;
  static constexpr std::int64_t kMinStepRows = 16;
  static constexpr std::int64_t kMaxStepRows = 1 << 16;
  static constexpr std::int64_t kMaxThreads = 1024;
  static constexpr double kMaxTimeMs = 3.6e6;

  std::int64_t context = 0;          // 0 = the model's
  std::int64_t max_sequences = 32;   // running at a time
  std::int64_t max_queue = 256;      // accepted, not yet running
  std::int64_t kv_memory_bytes = 0;  // 0 = max_sequences full contexts, at most half of the memory
  std::string kv_type = kernels::to_string(kernels::kDefaultKvType);
  std::int64_t step_rows = 256;  // rows of one step
  std::int64_t threads = 0;      // 0 = from the CPU budget
  bool prefix_cache = true;
  std::int64_t memory_bytes = 0;  // weights, keys and values, workspace; 0 = the cgroup's limit
  bool speculation = true;
  std::string scheduler = "fair";
  double step_target_ms = 0;  // 0 = from the cost of decoding
  double ageing_s = 1;
  std::int64_t batch_size = 16;
  double batch_wait_ms = 5;
  // No setting: what the process holds beside the engine, of memory_bytes too.
  std::int64_t reserved_bytes = 0;

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
    visitor.field({.name = "speculation",
                   .help = "Guess tokens from what stood in the text before, where it pays; the "
                           "output stays the same"},
                  speculation);
    visitor.field(
        {.name = "memory_bytes",
         .help = "Memory for all of it: weights, keys and values, workspace; 0 = what the "
                 "cgroup allows",
         .min = 0},
        memory_bytes);
    visitor.field({.name = "scheduler",
                   .help = "Policy: fair (time budget, tenants by weight), fifo, or batch (fair, "
                           "with one-shot requests gathered)",
                   .choices = scheduler::policy_names()},
                  scheduler);
    visitor.field(
        {.name = "step_target_ms",
         .help = "Longest step wanted, and so the longest time between tokens; 0 = 50 ms "
                 "or three times what decoding takes (between tenants 16 ms or 1.5 times)",
         .min = 0,
         .max = kMaxTimeMs},
        step_target_ms);
    visitor.field({.name = "ageing_s",
                   .help = "Waiting for so long counts as much as one level of priority",
                   .min = 0.001,
                   .max = kMaxTimeMs},
                  ageing_s);
    visitor.field({.name = "batch_size",
                   .help = "Scheduler batch: one-shot requests are held back until so many wait",
                   .min = 1,
                   .max = kMaxSequences},
                  batch_size);
    visitor.field({.name = "batch_wait_ms",
                   .help = "Scheduler batch: or until the oldest has waited so long",
                   .min = 0,
                   .max = kMaxTimeMs},
                  batch_wait_ms);
  }
  // The ranges above, for options that did not come through the config reader.
  [[nodiscard]] Result<void> validate() const;
};

}  // namespace spud::engine
