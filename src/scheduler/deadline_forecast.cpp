// SPDX-License-Identifier: Apache-2.0
#include "scheduler/deadline_forecast.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace spud::scheduler::internal {
namespace {

// Without a target of the operator's own: prompts may make a step so long, or so much longer than
// its decode rows alone.
struct DefaultTarget {
  double at_least_s;
  double stretch;
};
// Twenty tokens a second are more than anyone reads, and a first token that comes late is felt
// more. Prompts that are over sooner also leave longer batches to decode together: the rate rises.
constexpr DefaultTarget kAlone{.at_least_s = 50e-3, .stretch = 3};
// None is slowed down that much by what another tenant sends. Below 16 ms a step's fixed cost is
// too much of it; longer, and whoever arrives waits longer for the step that is under way than its
// own prompt takes.
constexpr DefaultTarget kBetweenTenants{.at_least_s = 16e-3, .stretch = 1.5};
// Steps in one stride while tenants take turns.
constexpr double kTurnSteps = 4;
// Rows of an answer that a newcomer has to leave room for (two pages of the usual size).
constexpr double kGrowthTokens = 64;
constexpr double kDone = 1e-6;
constexpr int kMostStrides = 20'000;
constexpr double kFarEnough = 4;

}  // namespace

double step_target_s(const SchedulerOptions& options, double decoding_s, bool shared) {
  if (options.step_target.count() > 0) {
    return std::chrono::duration<double>(options.step_target).count();
  }
  const DefaultTarget& target = shared ? kBetweenTenants : kAlone;
  return std::max(target.at_least_s, decoding_s * target.stretch);
}

std::int64_t rank_of(const SequenceClass& who, const SchedulerOptions& options) {
  return who.arrival.time_since_epoch().count() + who.priority * options.ageing.count();
}

// The state of things while it runs ahead.
struct DeadlineForecast::Run {
  std::vector<Job> jobs;
  std::map<std::uint32_t, Tenant> tenants;
  std::vector<Job*> decoding;
  double now_s = 0;
  double free_pages = 0;
  double context = 0;  // of those who decode
  std::int64_t running = 0;
};

DeadlineForecast::DeadlineForecast(const SchedulerOptions& options, const SchedulerInput& input,
                                   const CostModel& model, const FairQueue& queue,
                                   const LengthHistory& lengths, bool shared)
    : options_(options),
      model_(model),
      queue_(queue),
      lengths_(lengths),
      shared_(shared),
      free_pages_(static_cast<double>(input.free_pages)) {
  jobs_.reserve(input.running.size() + input.waiting.size());
  for (const RunningView& view : input.running) jobs_.push_back(make_job(view));
  for (const WaitingView& view : input.waiting) jobs_.push_back(make_job(view));
}

DeadlineForecast::Job DeadlineForecast::make_job(const RunningView& view) const {
  const std::int64_t rows = view.prompt_tokens - view.prefilled;
  const std::int64_t rest = std::clamp(lengths_.median_rest(view.generated),
                                       std::max<std::int64_t>(view.min_new_tokens, 1),
                                       std::max<std::int64_t>(view.max_new_tokens, 1));
  Job job{.id = view.id,
          .tenant = view.who.tenant,
          .rank = rank_of(view.who, options_),
          .running = true,
          .rows = static_cast<double>(rows),
          .tokens = static_cast<double>(rest),
          .context = static_cast<double>(view.prefilled),
          .pages = static_cast<double>(view.held_pages)};
  const double full = (job.context + job.rows) / static_cast<double>(options_.page_tokens);
  job.new_pages = std::max(full - job.pages, 0.0);
  job.pages += job.new_pages;
  return job;
}

DeadlineForecast::Job DeadlineForecast::make_job(const WaitingView& view) const {
  const std::int64_t cached = std::min(view.cached_tokens, view.prompt_tokens - 1);
  const std::int64_t rest = std::clamp(lengths_.median_rest(0), view.min_new_tokens,
                                       std::max(view.max_new_tokens, view.min_new_tokens));
  Job job{.id = view.id,
          .tenant = view.who.tenant,
          .rank = rank_of(view.who, options_),
          .rows = static_cast<double>(view.prompt_tokens - cached),
          .tokens = static_cast<double>(rest),
          .context = static_cast<double>(cached)};
  job.pages = (static_cast<double>(view.prompt_tokens) + std::min(job.tokens, kGrowthTokens)) /
              static_cast<double>(options_.page_tokens);
  job.new_pages = job.pages;
  return job;
}

void DeadlineForecast::drop(SequenceId id) {
  std::erase_if(jobs_, [id](const Job& job) { return job.id == id; });
}

// More than it can take: everything one after the other.
double DeadlineForecast::most_s(const Job& own) const {
  const CostModel::Coefficients cost = model_.coefficients();
  double rows = 0;
  double tokens = 0;
  double context = 0;
  for (const Job& job : jobs_) {
    rows += job.rows;
    tokens += job.tokens;
    context +=
        job.rows * (job.context + job.rows) + job.tokens * (job.context + job.rows + job.tokens);
  }
  const auto smallest = static_cast<double>(options_.min_prefill_rows);
  return (tokens + rows / smallest + own.tokens) * cost.fixed + tokens * cost.decode_row +
         rows * cost.prefill_row + context * cost.context_token;
}

double DeadlineForecast::completion_s(const WaitingView& view, double enough_s, Turn turn) const {
  const auto own = std::ranges::find(jobs_, view.id, &Job::id);
  if (own == jobs_.end()) return 0;
  const double most = most_s(*own);
  if (most <= enough_s) return most;
  Run run{.jobs = jobs_, .free_pages = free_pages_};
  const auto target = static_cast<std::size_t>(own - jobs_.begin());
  if (turn == Turn::kNext) run.jobs[target].rank = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    Job& job = run.jobs[i];
    const auto [at, added] = run.tenants.try_emplace(job.tenant);
    Tenant& tenant = at->second;
    if (added) tenant.time = queue_.time(job.tenant);
    if (added) tenant.weight = queue_.weight(job.tenant);
    if (job.running) {
      ++run.running;
      ++tenant.running;
      run.free_pages -= job.new_pages;
    }
    if (job.rows > 0) {
      tenant.prompts.push_back(i);
    } else {
      run.decoding.push_back(&job);
      run.context += job.context;
    }
  }
  for (auto& [number, tenant] : run.tenants) {
    std::ranges::sort(tenant.prompts, [&](std::size_t a, std::size_t b) {
      return run.jobs[a].rank > run.jobs[b].rank;
    });
  }
  if (turn == Turn::kNext) run.tenants[own->tenant].time = -1;
  for (int strides = 0; strides < kMostStrides; ++strides) {
    stride(run, pick_prompt(run));
    const bool done = run.jobs[target].rows <= kDone && run.jobs[target].tokens <= kDone;
    if (done || run.now_s > kFarEnough * enough_s) return run.now_s;
    end_finished(run);
  }
  return run.now_s;
}

// Takes a place and pages, if they are there.
bool DeadlineForecast::admit(Run& run, Job& job) const {
  const bool alone = run.running == 0;
  if (!alone && job.new_pages > run.free_pages) return false;
  if (run.running >= options_.max_sequences && !make_place(run, job)) return false;
  job.running = true;
  ++run.running;
  ++run.tenants.at(job.tenant).running;
  run.free_pages -= job.new_pages;
  return true;
}

// The tenant with most places for its weight gives one up to one with less.
bool DeadlineForecast::make_place(Run& run, const Job& job) const {
  const auto share = [&](std::uint32_t number, std::int64_t more) {
    const Tenant& tenant = run.tenants.at(number);
    return static_cast<double>(tenant.running + more) / tenant.weight;
  };
  Job* victim = nullptr;
  for (Job* other : run.decoding) {
    if (victim == nullptr || share(other->tenant, 0) > share(victim->tenant, 0) ||
        (other->tenant == victim->tenant && other->rank > victim->rank)) {
      victim = other;
    }
  }
  if (victim == nullptr || victim->tenant == job.tenant ||
      share(victim->tenant, -1) < share(job.tenant, 1)) {
    return false;
  }
  // What it had computed stays in the prefix cache, or most of it.
  Tenant& tenant = run.tenants.at(victim->tenant);
  victim->running = false;
  victim->rows = 1;
  victim->new_pages = victim->pages;
  run.free_pages += victim->pages;
  run.context -= victim->context;
  std::erase(run.decoding, victim);
  --run.running;
  --tenant.running;
  const auto index = static_cast<std::size_t>(victim - run.jobs.data());
  const auto place = std::ranges::find_if(
      tenant.prompts, [&](std::size_t other) { return run.jobs[other].rank < victim->rank; });
  tenant.prompts.insert(place, index);
  return true;
}

// As FairPlan does: the best prompt of the tenant that is furthest behind; when there is no room
// for it, only prompts that are under way go on.
DeadlineForecast::Job* DeadlineForecast::pick_prompt(Run& run) const {
  for (const bool admitting : {true, false}) {
    Tenant* best = nullptr;
    std::size_t chosen = 0;
    for (auto& [number, tenant] : run.tenants) {
      const auto usable = std::ranges::find_if(
          tenant.prompts.rbegin(), tenant.prompts.rend(),
          [&](std::size_t index) { return admitting || run.jobs[index].running; });
      if (usable == tenant.prompts.rend()) continue;
      if (best != nullptr && tenant.time >= best->time) continue;
      best = &tenant;
      chosen = *usable;
    }
    if (best == nullptr) return nullptr;
    Job& job = run.jobs[chosen];
    if (job.running || admit(run, job)) return &job;
  }
  return nullptr;
}

// Some steps of the same kind: all decode, and `prompt` (or none) fills them up.
void DeadlineForecast::stride(Run& run, Job* prompt) const {
  const CostModel::Coefficients cost = model_.coefficients();
  const auto num_decoding = static_cast<double>(run.decoding.size());
  const double decoding_s =
      cost.fixed + cost.decode_row * num_decoding + cost.context_token * run.context;
  double steps = std::numeric_limits<double>::infinity();
  for (const Job* job : run.decoding) steps = std::min(steps, job->tokens);
  double step_s = decoding_s;
  double rows = 0;  // of a step
  if (prompt != nullptr) {
    std::size_t asking = 0;
    for (const auto& [number, tenant] : run.tenants) asking += tenant.prompts.empty() ? 0 : 1;
    const double target = step_target_s(options_, run.decoding.empty() ? 0 : decoding_s, shared_);
    const double row_s = std::max(
        cost.prefill_row + cost.context_token * (prompt->context + prompt->rows / 2), 1e-9);
    rows = std::clamp((target - decoding_s) / row_s, static_cast<double>(options_.min_prefill_rows),
                      std::max(static_cast<double>(options_.step_rows) - num_decoding,
                               static_cast<double>(options_.min_prefill_rows)));
    step_s = decoding_s + rows * row_s;
    steps = std::min(steps, prompt->rows / rows);
    if (asking > 1) steps = std::min(steps, kTurnSteps);
    run.tenants.at(prompt->tenant).time +=
        steps * (step_s - decoding_s) / run.tenants.at(prompt->tenant).weight;
    prompt->rows -= steps * rows;
    prompt->context += steps * rows;
  }
  if (steps == std::numeric_limits<double>::infinity()) steps = 1;  // nobody can do anything
  run.now_s += steps * step_s;
  for (Job* job : run.decoding) {
    job->tokens -= steps;
    job->context += steps;
    Tenant& tenant = run.tenants.at(job->tenant);
    tenant.time += steps * (cost.decode_row + cost.context_token * job->context) / tenant.weight;
  }
  run.context += steps * num_decoding;
  if (prompt == nullptr || prompt->rows > kDone) return;
  // Its last row samples the first token.
  prompt->rows = 0;
  prompt->tokens -= 1;
  run.context += prompt->context;
  run.decoding.push_back(prompt);
  std::erase(run.tenants.at(prompt->tenant).prompts,
             static_cast<std::size_t>(prompt - run.jobs.data()));
}

void DeadlineForecast::end_finished(Run& run) const {
  std::erase_if(run.decoding, [&](const Job* job) {
    if (job->tokens > kDone) return false;
    run.context -= job->context;
    run.free_pages += job->pages;
    --run.running;
    --run.tenants.at(job->tenant).running;
    return true;
  });
}

}  // namespace spud::scheduler::internal
