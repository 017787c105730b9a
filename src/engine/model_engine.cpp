// SPDX-License-Identifier: Apache-2.0
#include "engine/model_engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "concurrency/cpu_budget.hpp"
#include "engine/engine_core.hpp"
#include "engine/memory_plan.hpp"
#include "telemetry/log.hpp"

namespace spud::engine {
namespace {

using concurrency::CpuBudget;

// Tokens beyond the model's rows would be sampled never and indexed once.
Result<void> check_vocabulary(const EngineParts& parts) {
  const auto rows = static_cast<std::size_t>(parts.model->hyper_parameters().vocabulary);
  if (parts.tokenizer->vocabulary_size() <= rows) return {};
  return fail(ErrorCode::kInvalidArgument,
              "the tokenizer has {} tokens, the model only {} embedding rows: they do not belong "
              "together",
              parts.tokenizer->vocabulary_size(), rows);
}

Result<std::int64_t> pick_context(const EngineParts& parts, const EngineOptions& options) {
  const std::int64_t trained = parts.model->hyper_parameters().context_length;
  if (options.context > trained) {
    return fail(ErrorCode::kInvalidArgument, "context is {}; the model was trained for {} at most",
                options.context, trained);
  }
  return options.context == 0 ? trained : options.context;
}

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

Result<std::unique_ptr<kvcache::KvCache>> make_cache(const EngineParts& parts,
                                                     const EngineOptions& options,
                                                     std::int64_t context, int threads,
                                                     const CpuBudget& budget) {
  SPUD_TRY(const kernels::KvType kv_type, kvcache::parse_kv_type(options.kv_type));
  const kvcache::Geometry geometry = parts.model->kv_geometry(kv_type);
  const MemoryLimit limit =
      smallest_limit(options.memory_bytes, budget.memory_limit_bytes, machine_memory());
  const MemoryPlan plan = plan_memory(*parts.model, options, geometry, context, threads);
  SPUD_TRY(const std::size_t pages, choose_pages(plan, limit, options, context));
  SPUD_LOG(info, "memory planned", {"limit", limit.bytes}, {"weights", plan.weights},
           {"activations", plan.activations}, {"logits", plan.logits + plan.sampling},
           {"requests", plan.requests + pages * plan.page_overhead}, {"program", plan.reserved},
           {"kv", pages * plan.page_bytes}, {"most", plan.with_pages(pages)});
  return kvcache::KvCache::create(geometry, pages);
}

scheduler::SchedulerOptions scheduler_options(const EngineOptions& options) {
  const auto ns = [](double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * seconds));
  };
  return {.max_sequences = options.max_sequences,
          .step_rows = options.step_rows,
          .min_prefill_rows = std::min<std::int64_t>(16, options.step_rows),
          .page_tokens = kernels::kPageTokens,
          .step_target = ns(options.step_target_ms / 1e3),
          .ageing = ns(options.ageing_s),
          .batch_size = options.batch_size,
          .batch_wait = ns(options.batch_wait_ms / 1e3)};
}

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(EngineParts parts, const EngineOptions& options) {
  SPUD_TRY(options.validate());
  SPUD_TRY(check_vocabulary(parts));
  SPUD_TRY(const std::int64_t context, pick_context(parts, options));
  const CpuBudget budget = concurrency::read_cpu_budget();
  const int threads = options.threads > 0 ? static_cast<int>(options.threads) : budget.threads;
  SPUD_TRY(std::unique_ptr<kvcache::KvCache> cache,
           make_cache(parts, options, context, threads, budget));
  SPUD_TRY(auto policy, scheduler::make_scheduler(options.scheduler, scheduler_options(options)));
  const EngineCoreOptions core{.context = context,
                               .max_sequences = options.max_sequences,
                               .max_queue = options.max_queue,
                               .num_threads = threads,
                               .logit_rows = most_logit_rows(options),
                               .prefix_cache = options.prefix_cache,
                               .speculation = options.speculation};
  return std::make_unique<EngineCore>(std::move(parts), core, std::move(cache), std::move(policy));
}

}  // namespace spud::engine
