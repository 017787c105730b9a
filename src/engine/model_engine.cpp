// SPDX-License-Identifier: Apache-2.0
#include "engine/model_engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "concurrency/cpu_budget.hpp"
#include "engine/engine_core.hpp"

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

std::uint64_t half_of_memory(const CpuBudget& budget) {
  const auto physical = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  return std::min(physical, budget.memory_limit_bytes.value_or(physical)) / 2;
}

Result<std::unique_ptr<kvcache::KvCache>> make_cache(const EngineParts& parts,
                                                     const EngineOptions& options,
                                                     std::int64_t context,
                                                     const CpuBudget& budget) {
  SPUD_TRY(const kernels::KvType kv_type, kvcache::parse_kv_type(options.kv_type));
  const kvcache::Geometry geometry = parts.model->kv_geometry(kv_type);
  const std::size_t page_bytes = geometry.page_bytes();
  const std::size_t one_context = kvcache::pages_for(static_cast<std::size_t>(context));
  const std::size_t all = one_context * static_cast<std::size_t>(options.max_sequences);
  const std::size_t pages =
      options.kv_memory_bytes > 0
          ? std::min(all, static_cast<std::size_t>(options.kv_memory_bytes) / page_bytes)
          : std::min<std::size_t>(all, half_of_memory(budget) / page_bytes);
  if (pages < one_context) {
    return fail(ErrorCode::kInvalidArgument,
                "the KV memory holds {} tokens; one full context of {} needs {} bytes: raise "
                "kv_memory_bytes or lower context",
                pages * static_cast<std::size_t>(kernels::kPageTokens), context,
                one_context * page_bytes);
  }
  return kvcache::KvCache::create(geometry, pages);
}

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(EngineParts parts, const EngineOptions& options) {
  SPUD_TRY(options.validate());
  SPUD_TRY(check_vocabulary(parts));
  SPUD_TRY(const std::int64_t context, pick_context(parts, options));
  const CpuBudget budget = concurrency::read_cpu_budget();
  SPUD_TRY(std::unique_ptr<kvcache::KvCache> cache, make_cache(parts, options, context, budget));
  const scheduler::SchedulerOptions limits{
      .max_sequences = options.max_sequences,
      .step_rows = options.step_rows,
      .min_prefill_rows = std::min<std::int64_t>(16, options.step_rows)};
  SPUD_TRY(limits.validate());
  const EngineCoreOptions core{
      .context = context,
      .max_sequences = options.max_sequences,
      .max_queue = options.max_queue,
      .num_threads = options.threads > 0 ? static_cast<int>(options.threads) : budget.threads,
      .prefix_cache = options.prefix_cache};
  return std::make_unique<EngineCore>(std::move(parts), core, std::move(cache),
                                      scheduler::make_fifo_scheduler(limits));
}

}  // namespace spud::engine
