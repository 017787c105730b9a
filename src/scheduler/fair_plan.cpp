// SPDX-License-Identifier: Apache-2.0
#include "scheduler/fair_plan.hpp"

#include <algorithm>

#include "scheduler/deadline_forecast.hpp"

namespace spud::scheduler::internal {
namespace {

// A sequence is admitted when, beside its prompt, it and all that run can grow by so many pages:
// otherwise one would be preempted right after another was let in.
constexpr std::int64_t kGrowthPages = 2;

}  // namespace

FairPlan::FairPlan(const SchedulerOptions& options, const SchedulerInput& input,
                   const CostModel& model, FairQueue& queue, bool shared)
    : options_(options),
      input_(input),
      model_(model),
      queue_(queue),
      free_pages_(input.free_pages) {
  running_.reserve(input.running.size());
  waiting_.reserve(input.waiting.size());
  for (std::size_t i = 0; i < input.running.size(); ++i) {
    running_.push_back(make_item(input.running[i], i));
    queue_.activate(input.running[i].who.tenant, input.running[i].who.weight);
  }
  for (std::size_t i = 0; i < input.waiting.size(); ++i) {
    waiting_.push_back(make_item(input.waiting[i], i));
    queue_.activate(input.waiting[i].who.tenant, input.waiting[i].who.weight);
    tenants_.try_emplace(input.waiting[i].who.tenant);
  }
  for (const Item& item : running_) {
    Tenant& tenant = tenants_[item.tenant];
    ++tenant.num_running;
    tenant.held_pages += item.held_pages;
    ++num_running_;
    if (!item.decodes) continue;
    ++decode_rows_;
    context_ += item.computed + 1;
  }
  const double decoding_s = decode_rows_ == 0 ? 0 : predict_s();
  target_s_ = step_target_s(options, decoding_s, shared);
}

FairPlan::Item FairPlan::make_item(const RunningView& view, std::size_t index) const {
  const bool decodes = view.prefilled >= view.prompt_tokens;
  return {.running = true,
          .index = index,
          .id = view.id,
          .tenant = view.who.tenant,
          .rank = rank_of(view.who, options_),
          .computed = view.prefilled,
          .known = decodes ? view.prefilled + 1 : view.prompt_tokens,
          .held_pages = view.held_pages,
          .exclusive_pages = view.exclusive_pages,
          .worst_case_pages = view.worst_case_pages,
          .decodes = decodes};
}

FairPlan::Item FairPlan::make_item(const WaitingView& view, std::size_t index) const {
  return {.index = index,
          .id = view.id,
          .tenant = view.who.tenant,
          .rank = rank_of(view.who, options_),
          .computed = std::min(view.cached_tokens, view.prompt_tokens - 1),
          .known = view.prompt_tokens,
          .worst_case_pages = view.worst_case_pages};
}

std::int64_t FairPlan::pages_for(std::int64_t tokens) const {
  return (tokens + options_.page_tokens - 1) / options_.page_tokens;
}

std::int64_t FairPlan::missing_pages(const Item& item, std::int64_t tokens) const {
  return std::max<std::int64_t>(pages_for(item.computed + tokens) - item.held_pages, 0);
}

std::int64_t FairPlan::growth_pages(const Item& item) const {
  const std::int64_t held = std::max(item.held_pages, pages_for(item.known));
  return std::clamp<std::int64_t>(item.worst_case_pages - held, 0, kGrowthPages);
}

void FairPlan::drop(SequenceId id) {
  for (Item& item : waiting_) {
    if (item.id == id) item.gone = true;
  }
  for (Item& item : running_) {
    if (item.id != id || item.gone) continue;
    item.gone = true;
    --num_running_;
    Tenant& tenant = tenants_[item.tenant];
    --tenant.num_running;
    tenant.held_pages -= item.held_pages;
    if (!item.decodes) continue;
    --decode_rows_;
    context_ -= item.computed + 1;
  }
}

// Whom to take pages or a place from: of the tenant that holds most for its weight, the one that
// came last and matters least.
FairPlan::Item* FairPlan::worst_running(bool among_largest_tenant) {
  const auto load = [&](const Item& item) {
    const Tenant& tenant = tenants_[item.tenant];
    return static_cast<double>(tenant.held_pages + tenant.num_running) / queue_.weight(item.tenant);
  };
  Item* worst = nullptr;
  for (Item& item : running_) {
    if (item.gone) continue;
    if (worst == nullptr) {
      worst = &item;
      continue;
    }
    const double difference = among_largest_tenant ? load(item) - load(*worst) : 0;
    if (difference > 0 || (difference == 0 && item.rank > worst->rank)) worst = &item;
  }
  return worst;
}

void FairPlan::preempt(Item& victim) {
  plan_.preempt.push_back(victim.id);
  preempted_tenants_.insert(victim.tenant);
  free_pages_ += victim.exclusive_pages;
  drop(victim.id);
}

void FairPlan::plan_decodes() {
  std::int64_t wanted = 0;
  for (const Item& item : running_) {
    if (item.decodes && !item.gone) wanted += missing_pages(item, 1);
  }
  while (wanted > free_pages_ && num_running_ > 1) {
    Item& victim = *worst_running(/*among_largest_tenant=*/true);
    if (victim.decodes) wanted -= missing_pages(victim, 1);
    preempt(victim);
  }
  const CostModel::Coefficients cost = model_.coefficients();
  for (const Item& item : running_) {
    if (item.gone) continue;
    if (!item.decodes) {
      promised_pages_ += missing_pages(item, item.known - item.computed);
      continue;
    }
    plan_.decode.push_back(item.id);
    growth_pages_ += growth_pages(item);
    queue_.charge(item.tenant,
                  cost.decode_row + cost.context_token * static_cast<double>(item.computed + 1));
  }
  free_pages_ -= wanted;
}

void FairPlan::plan_prompts() {
  const auto later = [](const Item* a, const Item* b) { return a->rank > b->rank; };
  for (std::vector<Item>* items : {&running_, &waiting_}) {
    for (Item& item : *items) {
      if (!item.gone && !item.decodes) tenants_[item.tenant].prompts.push_back(&item);
    }
  }
  for (auto& [number, tenant] : tenants_) std::ranges::make_heap(tenant.prompts, later);
  bool first = true;
  while (Item* item = pick_prompt()) {
    Tenant& tenant = tenants_[item->tenant];
    std::ranges::pop_heap(tenant.prompts, later);
    tenant.prompts.pop_back();
    if (item->gone) continue;
    if (!item->running && (closed_ || !(fits(*item) || make_way(*item)))) {
      closed_ = true;  // or small ones would for ever take what a large one waits for
      continue;
    }
    const std::int64_t count = chunk_size(*item, first);
    if (count == 0) {
      if (item->running) continue;  // no page; others may have theirs
      break;
    }
    add_chunk(*item, count);
    first = false;
  }
  if (!plan_.has_rows()) unblock();
}

// The best prompt of the tenant that is furthest behind.
FairPlan::Item* FairPlan::pick_prompt() {
  const Tenant* best = nullptr;
  double earliest = 0;
  for (const auto& [number, tenant] : tenants_) {
    if (tenant.prompts.empty()) continue;
    const double time = queue_.time(number);
    // Of two that are level, the one that runs less: it asked for less until now.
    if (best == nullptr || time < earliest ||
        (time == earliest && tenant.num_running < best->num_running)) {
      best = &tenant;
      earliest = time;
    }
  }
  return best == nullptr ? nullptr : best->prompts.front();
}

void FairPlan::look_up(Item& item) const {
  if (item.looked_up || item.running || !input_.cached_prefix) return;
  item.looked_up = true;
  item.cached = input_.cached_prefix(item.id);
  item.held_pages = item.cached.pages;
  item.computed = std::min(item.cached.pages * options_.page_tokens, item.known - 1);
}

// Free pages that its cached prefix takes. Who was preempted in this plan may have held some of
// it, and then they are counted among the free ones already; only tenants of one's own share.
std::int64_t FairPlan::claim_cost(const Item& item, const Item* without) const {
  const bool unsure = preempted_tenants_.contains(item.tenant) ||
                      (without != nullptr && without->tenant == item.tenant);
  return unsure ? item.cached.pages : claims_.cost(item.cached);
}

// Whether there is a place and pages for it, now or if `without` were preempted.
bool FairPlan::fits(Item& item, const Item* without) const {
  std::int64_t places = options_.max_sequences - num_running_;
  std::int64_t pages = free_pages_ - promised_pages_ - growth_pages_;
  if (without != nullptr) {
    ++places;
    pages += without->exclusive_pages;
    pages += without->decodes ? missing_pages(*without, 1) + growth_pages(*without)
                              : missing_pages(*without, without->known - without->computed);
  }
  if (places <= 0) return false;
  look_up(item);
  const std::int64_t prompt = pages_for(item.known) - item.cached.pages + claim_cost(item, without);
  if (num_running_ == 0) return prompt <= free_pages_;
  return prompt + growth_pages(item) <= pages;
}

// A tenant with more than its share makes way for one with less, and within a tenant the less
// urgent for the more urgent, never the other way round afterwards: an exchange happens once.
bool FairPlan::may_replace(const Item& victim, const Item& item) const {
  if (victim.tenant == item.tenant) {
    const std::int32_t running = input_.running[victim.index].who.priority;
    const std::int32_t waiting = input_.waiting[item.index].who.priority;
    return running > waiting && victim.rank > item.rank + options_.ageing.count();
  }
  const auto share = [&](std::uint32_t number, std::int64_t more_places, std::int64_t more_pages) {
    const Tenant& tenant = tenants_.at(number);
    const bool places = num_running_ >= options_.max_sequences;
    return static_cast<double>(places ? tenant.num_running + more_places
                                      : tenant.held_pages + more_pages) /
           queue_.weight(number);
  };
  return share(victim.tenant, -1, -victim.held_pages) >=
         share(item.tenant, 1, pages_for(item.known));
}

// At most one is preempted for one that is admitted, and only when that is enough.
bool FairPlan::make_way(Item& item) {
  const auto serves = [&](const Item& victim) {
    return may_replace(victim, item) && fits(item, &victim);
  };
  Item* victim = worst_running(/*among_largest_tenant=*/true);
  if (victim == nullptr || !serves(*victim)) {
    victim = nullptr;
    for (Item& other : running_) {  // within the tenant
      if (other.gone || other.tenant != item.tenant || !serves(other)) continue;
      if (victim == nullptr || other.rank > victim->rank) victim = &other;
    }
  }
  if (victim == nullptr) return false;
  if (victim->decodes) {
    std::erase(plan_.decode, victim->id);
    growth_pages_ -= growth_pages(*victim);
    free_pages_ += missing_pages(*victim, 1);
  } else {
    std::erase_if(plan_.prefill, [&](const PrefillChunk& c) { return c.id == victim->id; });
    promised_pages_ -= missing_pages(*victim, victim->known - victim->computed);
  }
  preempt(*victim);
  return true;
}

// The most rows that keep the step within its target, in time and in rows.
std::int64_t FairPlan::chunk_size(const Item& item, bool first) const {
  const std::int64_t left = item.known - item.computed;
  const std::int64_t rows = decode_rows_ + prefill_rows_;
  const std::int64_t least = first ? options_.min_prefill_rows : 0;
  std::int64_t most = std::min(left, std::max(options_.step_rows - rows, least));
  const std::int64_t pages =
      item.running ? free_pages_ : free_pages_ - promised_pages_ - claim_cost(item);
  const std::int64_t room =
      (item.held_pages + std::max<std::int64_t>(pages, 0)) * options_.page_tokens - item.computed;
  most = std::min(most, room);
  if (most <= 0) return 0;
  const auto within = [&](std::int64_t n) {
    const std::int64_t context = n * item.computed + n * (n + 1) / 2;
    const std::int64_t samples = n == left ? 1 : 0;
    return model_.predict_s(decode_rows_ + samples, prefill_rows_ + n - samples,
                            context_ + context) <= target_s_;
  };
  std::int64_t low = std::min(least, most);  // known to be good
  std::int64_t high = most;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (within(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  // A few rows of a long prompt are not worth a place in the step.
  return low < std::min(left, options_.min_prefill_rows) ? 0 : low;
}

void FairPlan::add_chunk(Item& item, std::int64_t count) {
  const std::int64_t left = item.known - item.computed;
  const bool last = count == left;
  const double before = predict_s();
  if (!item.running) {
    plan_.admit.push_back(item.id);
    ++num_running_;
    Tenant& tenant = tenants_[item.tenant];
    ++tenant.num_running;
    tenant.held_pages += pages_for(item.known);
    promised_pages_ += missing_pages(item, left);
    free_pages_ -= claim_cost(item);
    claims_.claim(item.cached);
  }
  const std::int64_t taken = missing_pages(item, count);
  free_pages_ -= taken;
  promised_pages_ -= taken;
  if (last) {
    growth_pages_ += growth_pages(item);
    ++decode_rows_;
  }
  prefill_rows_ += last ? count - 1 : count;
  context_ += count * item.computed + count * (count + 1) / 2;
  plan_.prefill.push_back({.id = item.id, .num_tokens = count, .last = last});
  queue_.charge(item.tenant, predict_s() - before);
}

// Prompts hold all pages and none can go on: the worst gives up its own.
void FairPlan::unblock() {
  if (num_running_ < 2 || !plan_.preempt.empty() || !plan_.expire.empty()) return;
  preempt(*worst_running(/*among_largest_tenant=*/false));
}

}  // namespace spud::scheduler::internal
