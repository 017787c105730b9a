// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_plan.hpp"

#include <algorithm>
#include <string>

#include "engine/ngram_draft.hpp"
#include "engine/sampler.hpp"
#include "engine/step_runner.hpp"

namespace spud::engine {
namespace {

// Of a running sequence: the token, its place in the counts for penalties and in the index of
// guesses, both hash maps.
constexpr std::uint64_t kTokenBytes = 4 + 2 * 48;
// A node of the prefix cache: its tokens as key, the maps' nodes, its place in the order of use.
constexpr std::uint64_t kNodeBytes = 320;
// Options, sampler, decoder, queue of events, the connection and coroutines of a request.
constexpr std::uint64_t kRequestBytes = 24U << 10;

std::string name_of(const MemoryLimit& limit) {
  switch (limit.from) {
    case MemoryLimit::From::kOption:
      return fmt::format("--memory (memory) is {} bytes", limit.bytes);
    case MemoryLimit::From::kCgroup:
      return fmt::format("the cgroup allows {} bytes of memory", limit.bytes);
    case MemoryLimit::From::kMachine:
      return fmt::format("this machine has {} bytes of memory", limit.bytes);
  }
  return {};
}

// What a person can do who wants `bytes`.
std::string raise(const MemoryLimit& limit, std::uint64_t bytes) {
  return limit.from == MemoryLimit::From::kOption
             ? fmt::format("raise --memory to at least {}", bytes)
             : fmt::format("allow at least {}", bytes);
}

}  // namespace

MemoryLimit smallest_limit(std::int64_t option, std::optional<std::uint64_t> cgroup,
                           std::uint64_t machine) {
  MemoryLimit limit{.bytes = machine, .from = MemoryLimit::From::kMachine};
  if (cgroup && *cgroup < limit.bytes) limit = {*cgroup, MemoryLimit::From::kCgroup};
  const auto asked = static_cast<std::uint64_t>(option);
  if (option > 0 && asked <= limit.bytes) limit = {asked, MemoryLimit::From::kOption};
  return limit;
}

std::int64_t most_logit_rows(const EngineOptions& options) {
  const std::int64_t guessing =
      options.speculation ? StepRunner::kMostSpeculating * (1 + NgramDraft::kLongest) : 0;
  return std::max({options.max_sequences, guessing, StepRunner::kScoredRows});
}

MemoryPlan plan_memory(const model::Model& model, const EngineOptions& options,
                       const kvcache::Geometry& geometry, std::int64_t context, int threads) {
  const std::int64_t vocabulary = model.hyper_parameters().vocabulary;
  MemoryPlan plan;
  plan.weights = model.weight_bytes();
  plan.activations = model.workspace_bytes();
  plan.logits = static_cast<std::uint64_t>(most_logit_rows(options) * vocabulary) * sizeof(float);
  plan.sampling = static_cast<std::uint64_t>(threads) * SamplerScratch::bytes(vocabulary);
  // Of those that wait, the tokens of the prompt; those that run have theirs counted by page.
  plan.requests =
      static_cast<std::uint64_t>(options.max_sequences + options.max_queue) * kRequestBytes +
      static_cast<std::uint64_t>(options.max_queue * context) * sizeof(model::TokenId);
  plan.reserved = static_cast<std::uint64_t>(options.reserved_bytes);
  plan.page_bytes = geometry.page_bytes();
  plan.page_overhead = kernels::kPageTokens * kTokenBytes + kNodeBytes;
  return plan;
}

Result<std::size_t> choose_pages(const MemoryPlan& plan, const MemoryLimit& limit,
                                 const EngineOptions& options, std::int64_t context) {
  const std::uint64_t page = plan.page_bytes + plan.page_overhead;
  const std::uint64_t one_context = kvcache::pages_for(static_cast<std::size_t>(context));
  const std::uint64_t all = one_context * static_cast<std::uint64_t>(options.max_sequences);
  const std::uint64_t room = limit.bytes > plan.fixed() ? limit.bytes - plan.fixed() : 0;
  const auto asked = static_cast<std::uint64_t>(options.kv_memory_bytes);
  if (asked > 0 && asked / plan.page_bytes < one_context) {
    return fail(ErrorCode::kInvalidArgument,
                "--kv-memory (kv_memory) is {} bytes, but keys and values of one full context of "
                "{} tokens take {}: raise it, or lower --ctx",
                asked, context, one_context * plan.page_bytes);
  }
  const std::uint64_t asked_pages = asked > 0 ? std::min(all, asked / plan.page_bytes) : 0;
  if (asked_pages * page > room) {
    return fail(ErrorCode::kInvalidArgument,
                "--kv-memory (kv_memory) is {} bytes, but {}, of which weights, workspace and "
                "program take {}: lower --kv-memory to {} at most, or {}",
                asked, name_of(limit), plan.fixed(), room / page * plan.page_bytes,
                raise(limit, plan.with_pages(asked_pages)));
  }
  if (room / page < one_context) {
    return fail(ErrorCode::kInvalidArgument,
                "{}, but weights, workspace and program take {}, and keys and values of one full "
                "context of {} tokens {}: {}, or lower --ctx or --max-sequences",
                name_of(limit), plan.fixed(), context, one_context * page,
                raise(limit, plan.with_pages(one_context)));
  }
  if (asked > 0) return asked_pages;
  // Who named a limit wants it used; otherwise the machine is left a half.
  const std::uint64_t most =
      limit.from == MemoryLimit::From::kOption ? room : std::min(room, limit.bytes / 2);
  return std::max(std::min(all, most / page), one_context);
}

}  // namespace spud::engine
