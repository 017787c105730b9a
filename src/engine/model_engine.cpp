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

// The program itself, its tokenizer and connections.
constexpr std::uint64_t kProgramBytes = 64U << 20;

struct MemoryRoom {
  std::uint64_t limit = 0;  // of everything
  std::uint64_t fixed = 0;  // taken before any keys and values: weights, logits, program
  std::uint64_t kv() const noexcept { return limit > fixed ? limit - fixed : 0; }
};

MemoryRoom measure_room(const EngineParts& parts, const EngineOptions& options,
                        const CpuBudget& budget) {
  const auto physical = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  const model::HyperParameters& hyper = parts.model->hyper_parameters();
  const auto logits = static_cast<std::uint64_t>(options.max_sequences * hyper.vocabulary) * 4;
  MemoryRoom room;
  room.limit = std::min(physical, budget.memory_limit_bytes.value_or(physical));
  if (options.memory_bytes > 0) {
    room.limit = std::min(room.limit, static_cast<std::uint64_t>(options.memory_bytes));
  }
  room.fixed = parts.model->weight_bytes() + logits + kProgramBytes;
  return room;
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
  const MemoryRoom room = measure_room(parts, options, budget);
  const auto asked = static_cast<std::uint64_t>(options.kv_memory_bytes);
  if (asked > room.kv()) {
    return fail(ErrorCode::kInvalidArgument,
                "kv_memory_bytes is {}, but the memory limit of {} leaves {} beside weights and "
                "workspace ({}): lower kv_memory_bytes, or raise memory_bytes",
                asked, room.limit, room.kv(), room.fixed);
  }
  const std::uint64_t most = asked > 0                  ? asked
                             : options.memory_bytes > 0 ? room.kv()
                                                        : std::min(room.kv(), room.limit / 2);
  const std::size_t pages = std::min<std::size_t>(all, most / page_bytes);
  if (pages < one_context) {
    return fail(ErrorCode::kInvalidArgument,
                "the KV memory holds {} tokens; one full context of {} needs {} bytes, and weights "
                "and workspace take {} of the {} allowed: raise kv_memory_bytes or memory_bytes, "
                "or lower context",
                pages * static_cast<std::size_t>(kernels::kPageTokens), context,
                one_context * page_bytes, room.fixed, room.limit);
  }
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
  SPUD_TRY(std::unique_ptr<kvcache::KvCache> cache, make_cache(parts, options, context, budget));
  SPUD_TRY(auto policy, scheduler::make_scheduler(options.scheduler, scheduler_options(options)));
  const EngineCoreOptions core{
      .context = context,
      .max_sequences = options.max_sequences,
      .max_queue = options.max_queue,
      .num_threads = options.threads > 0 ? static_cast<int>(options.threads) : budget.threads,
      .prefix_cache = options.prefix_cache,
      .speculation = options.speculation};
  return std::make_unique<EngineCore>(std::move(parts), core, std::move(cache), std::move(policy));
}

}  // namespace spud::engine
