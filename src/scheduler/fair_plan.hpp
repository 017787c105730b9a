// SPDX-License-Identifier: Apache-2.0
// One step of the fair policy in the making: what is running and waiting by tenant, the pages and
// the time that are left. Lives during one call of plan(). Internal to the fair policy.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "scheduler/cost_model.hpp"
#include "scheduler/fair_queue.hpp"
#include "scheduler/prefix_claims.hpp"
#include "scheduler/scheduler.hpp"

namespace spud::scheduler::internal {

class FairPlan {
 public:
  FairPlan(const SchedulerOptions& options, const SchedulerInput& input, const CostModel& model,
           FairQueue& queue, bool shared);

  // In this order. What expires or is refused takes no part.
  void drop(SequenceId id);
  void plan_decodes();
  void plan_prompts();
  StepPlan take() && { return std::move(plan_); }
  StepPlan& plan() noexcept { return plan_; }

  double target_s() const noexcept { return target_s_; }

 private:
  struct Item {
    bool running = false;
    std::size_t index = 0;  // into the input's running or waiting
    SequenceId id;
    std::uint32_t tenant = 0;
    std::int64_t rank = 0;  // smaller goes first
    std::int64_t computed = 0;
    std::int64_t known = 0;       // tokens; computed up to here, it samples
    std::int64_t held_pages = 0;  // of a waiting one: those it will find cached
    std::int64_t exclusive_pages = 0;
    std::int64_t worst_case_pages = 0;
    CachedPrefix cached;  // of a waiting one, once looked up
    bool looked_up = false;
    bool decodes = false;
    bool gone = false;
  };
  struct Tenant {
    std::int64_t num_running = 0;
    std::int64_t held_pages = 0;
    std::vector<Item*> prompts;  // a heap, best on top
  };

  Item make_item(const RunningView& view, std::size_t index) const;
  Item make_item(const WaitingView& view, std::size_t index) const;
  std::int64_t pages_for(std::int64_t tokens) const;
  std::int64_t missing_pages(const Item& item, std::int64_t tokens) const;
  std::int64_t growth_pages(const Item& item) const;
  double predict_s() const { return model_.predict_s(decode_rows_, prefill_rows_, context_); }

  Item* worst_running(bool among_largest_tenant);
  void preempt(Item& victim);
  void look_up(Item& item) const;
  std::int64_t claim_cost(const Item& item, const Item* without = nullptr) const;
  bool fits(Item& item, const Item* without = nullptr) const;
  bool make_way(Item& item);
  bool may_replace(const Item& victim, const Item& item) const;
  Item* pick_prompt();
  std::int64_t chunk_size(const Item& item, bool first) const;
  void add_chunk(Item& item, std::int64_t count);
  void unblock();

  const SchedulerOptions& options_;
  const SchedulerInput& input_;
  const CostModel& model_;
  FairQueue& queue_;
  StepPlan plan_;
  std::vector<Item> running_;
  std::vector<Item> waiting_;
  std::map<std::uint32_t, Tenant> tenants_;  // with something running or waiting
  PrefixClaims claims_;
  std::set<std::uint32_t> preempted_tenants_;  // in this plan
  std::int64_t num_running_ = 0;
  std::int64_t free_pages_ = 0;
  std::int64_t promised_pages_ = 0;  // to prompts that are under way
  std::int64_t growth_pages_ = 0;    // that those who decode will want soon
  std::int64_t decode_rows_ = 0;
  std::int64_t prefill_rows_ = 0;
  std::int64_t context_ = 0;
  double target_s_ = 0;
  bool closed_ = false;  // nobody else is admitted in this step
};

}  // namespace spud::scheduler::internal
