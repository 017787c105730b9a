// SPDX-License-Identifier: Apache-2.0
// A machine made of numbers: runs a policy against a list of arrivals on a simulated clock, with
// places, pages and a cost per step, and checks in every step that the policy keeps the rules. For
// tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "scheduler/scheduler.hpp"
#include "scheduler/simulated_pages.hpp"

namespace spud::scheduler {

struct SimRequest {
  double arrival_s = 0;
  std::int64_t prompt = 1;
  std::int64_t output = 1;
  std::int64_t max_tokens = 0;  // 0 = as output
  SequenceClass who;
  double deadline_s = 0;  // after arrival; 0 = none
  bool exact = false;     // the scheduler is told that `output` is what it will be
  // Begins with so many tokens that others with the same number begin with too.
  std::uint32_t prefix = 0;
  std::int64_t prefix_tokens = 0;
};

struct SimResult {
  double first_token_s = -1;  // after arrival
  double finished_s = -1;
  bool refused = false;
  bool expired = false;
  bool began = false;  // some of it was computed
  std::int64_t preempted = 0;
};

struct SimOptions {
  SchedulerOptions limits;
  std::int64_t pages = 4096;
  std::function<double(const StepCost&)> machine;  // seconds of a step
};

struct SimReport {
  std::vector<SimResult> results;
  std::vector<double> steps_s;
  double end_s = 0;
  std::int64_t most_waiting = 0;
  std::int64_t most_running = 0;
  std::int64_t evicted = 0;  // pages of prefixes
};

class Simulation {
 public:
  Simulation(Scheduler& scheduler, SimOptions options)
      : scheduler_(scheduler), options_(std::move(options)), pages_(options_.pages) {}

  // `requests` in order of arrival.
  SimReport run(const std::vector<SimRequest>& requests) {
    SimReport report;
    report.results.resize(requests.size());
    std::size_t next = 0;
    double now = 0;
    std::int64_t idle_steps = 0;
    while (next < requests.size() || !waiting_.empty() || !running_.empty()) {
      if (waiting_.empty() && running_.empty()) now = std::max(now, requests[next].arrival_s);
      for (; next < requests.size() && requests[next].arrival_s <= now; ++next) {
        waiting_.push_back({.request = &requests[next], .id = next + 1});
      }
      report.most_waiting = std::max(report.most_waiting, std::ssize(waiting_));
      const double took = step(now, report);
      if (::testing::Test::HasFatalFailure()) return report;
      if (took > 0) report.steps_s.push_back(took);
      idle_steps = took > 0 ? 0 : idle_steps + 1;
      if (took == 0) {
        const double wake = std::max(now + 1e-4, wake_s_);
        now = next < requests.size() ? std::min(wake, requests[next].arrival_s) : wake;
      }
      now += took;
      if (idle_steps > 100'000) {
        ADD_FAILURE() << "nothing happens any more at " << now << " s";
        return report;
      }
    }
    report.end_s = now;
    EXPECT_TRUE(pages_.all_back());
    report.evicted = pages_.num_evicted();
    return report;
  }

 private:
  struct Sequence {
    const SimRequest* request = nullptr;
    std::uint64_t id = 0;
    std::int64_t computed = 0;
    std::int64_t generated = 0;
    SimulatedPages::Held pages;
    bool started = false;
    std::int64_t known() const { return request->prompt + generated; }
    bool decoding() const { return generated > 0 && computed == known() - 1; }
  };

  static SteadyTime time(double s) {
    return SteadyTime(std::chrono::nanoseconds(static_cast<std::int64_t>(s * 1e9)));
  }
  std::int64_t pages_for(std::int64_t tokens) const {
    return (tokens + options_.limits.page_tokens - 1) / options_.limits.page_tokens;
  }
  // Whole pages, and never the last token.
  SimulatedPages::Prefix prefix(const Sequence& s) const {
    return {
        .number = s.request->prefix,
        .pages = std::min(s.request->prefix_tokens, s.known() - 1) / options_.limits.page_tokens};
  }
  std::int64_t limit(const Sequence& s) const {
    return s.request->max_tokens > 0 ? s.request->max_tokens : s.request->output;
  }
  SequenceClass who(const Sequence& s) const {
    SequenceClass who = s.request->who;
    who.arrival = time(s.request->arrival_s);
    return who;
  }
  std::optional<SteadyTime> deadline(const Sequence& s) const {
    if (s.request->deadline_s <= 0) return std::nullopt;
    return time(s.request->arrival_s + s.request->deadline_s);
  }

  StepPlan make_plan(double now) {
    std::vector<WaitingView> waiting;
    std::vector<RunningView> running;
    for (const Sequence& s : waiting_) {
      waiting.push_back({.id = SequenceId(s.id),
                         .worst_case_pages = pages_for(s.request->prompt + limit(s)),
                         .prompt_tokens = s.known(),
                         .deadline = deadline(s),
                         .who = who(s),
                         .min_new_tokens = s.request->exact ? limit(s) - s.generated : 1,
                         .max_new_tokens = limit(s) - s.generated,
                         .started = s.started});
    }
    for (const Sequence& s : running_) {
      running.push_back({.id = SequenceId(s.id),
                         .prompt_tokens = s.decoding() ? s.computed : s.known(),
                         .prefilled = s.computed,
                         .deadline = deadline(s),
                         .who = who(s),
                         .worst_case_pages = pages_for(s.request->prompt + limit(s)),
                         .held_pages = s.pages.all(),
                         .exclusive_pages = pages_.exclusive(prefix(s), s.pages),
                         .generated = s.generated,
                         .min_new_tokens = s.request->exact ? limit(s) - s.generated : 1,
                         .max_new_tokens = limit(s) - s.generated});
    }
    return scheduler_.plan({.waiting = waiting,
                            .running = running,
                            .free_pages = pages_.available(),
                            .now = time(now),
                            .cached_prefix = [this](SequenceId id) {
                              return pages_.look_up(prefix(*find(waiting_, id)));
                            }});
  }

  static std::deque<Sequence>::iterator find(std::deque<Sequence>& in, SequenceId id) {
    return std::ranges::find(in, id.value, &Sequence::id);
  }
  static void move(std::deque<Sequence>& from, std::deque<Sequence>& to, SequenceId id) {
    const auto at = find(from, id);
    ASSERT_NE(at, from.end());
    const Sequence sequence = *at;
    from.erase(at);
    to.insert(std::ranges::upper_bound(to, sequence.id, {}, &Sequence::id), sequence);
  }
  void end(SequenceId id) {
    for (auto* list : {&running_, &waiting_}) {
      const auto at = find(*list, id);
      if (at == list->end()) continue;
      pages_.release(prefix(*at), at->pages);
      list->erase(at);
      return;
    }
  }

  void apply(const StepPlan& plan, SimReport& report) {
    for (const SequenceId id : plan.expire) {
      report.results[id.value - 1].expired = true;
      end(id);
    }
    for (const Refusal& refusal : plan.refuse) {
      ASSERT_FALSE(find(waiting_, refusal.id)->started);
      report.results[refusal.id.value - 1].refused = true;
      end(refusal.id);
    }
    for (const SequenceId id : plan.preempt) {
      const auto at = find(running_, id);
      ASSERT_NE(at, running_.end());
      pages_.release(prefix(*at), at->pages);
      at->computed = 0;
      ++report.results[id.value - 1].preempted;
      move(running_, waiting_, id);
    }
    for (const SequenceId id : plan.admit) {
      move(waiting_, running_, id);
      Sequence& admitted = *find(running_, id);
      admitted.started = true;
      report.results[id.value - 1].began = true;
      pages_.attach(prefix(admitted), admitted.pages);
      admitted.computed = admitted.pages.shared * options_.limits.page_tokens;
    }
    report.most_running = std::max(report.most_running, std::ssize(running_));
    ASSERT_LE(std::ssize(running_), options_.limits.max_sequences);
  }

  // Seconds of the step; 0 when nothing was computed.
  double step(double now, SimReport& report) {
    const StepPlan plan = make_plan(now);
    wake_s_ =
        plan.wake_at ? std::chrono::duration<double>(plan.wake_at->time_since_epoch()).count() : 0;
    apply(plan, report);
    if (::testing::Test::HasFatalFailure()) return 0;
    StepCost cost;
    std::vector<std::uint64_t> sampled;
    std::vector<SequenceId> computed;
    const auto compute = [&](SequenceId id, std::int64_t count) {
      const auto at = find(running_, id);
      ASSERT_NE(at, running_.end());
      ASSERT_GE(count, 1);
      ASSERT_LE(at->computed + count, at->known());
      pages_.grow(at->pages, pages_for(at->computed + count));
      if (::testing::Test::HasFatalFailure()) return;
      const bool samples = at->computed + count == at->known();
      cost.decode_rows += samples ? 1 : 0;
      cost.prefill_rows += samples ? count - 1 : count;
      cost.context_tokens += count * at->computed + count * (count + 1) / 2;
      at->computed += count;
      computed.push_back(id);
      if (samples) sampled.push_back(id.value);
    };
    for (const SequenceId id : plan.decode) compute(id, 1);
    for (const PrefillChunk& chunk : plan.prefill) compute(chunk.id, chunk.num_tokens);
    if (::testing::Test::HasFatalFailure()) return 0;
    if (cost.decode_rows + cost.prefill_rows == 0) return 0;
    const double took = options_.machine(cost);
    cost.duration = std::chrono::nanoseconds(static_cast<std::int64_t>(took * 1e9));
    scheduler_.observe(cost);
    for (const SequenceId id : computed) {
      Sequence& s = *find(running_, id);
      pages_.publish(prefix(s), s.computed / options_.limits.page_tokens, s.pages);
    }
    for (const std::uint64_t id : sampled) {
      const auto at = find(running_, SequenceId(id));
      SimResult& result = report.results[id - 1];
      if (at->generated++ == 0) result.first_token_s = now + took - at->request->arrival_s;
      if (at->generated < at->request->output) continue;
      result.finished_s = now + took - at->request->arrival_s;
      end(SequenceId(id));
    }
    return took;
  }

  Scheduler& scheduler_;
  SimOptions options_;
  SimulatedPages pages_;
  double wake_s_ = 0;
  std::deque<Sequence> waiting_;
  std::deque<Sequence> running_;
};

// Like a model of 135 million parameters in eight bits on two cores.
inline double small_model_s(const StepCost& c) {
  return 2.5e-3 + 3.5e-4 * static_cast<double>(c.decode_rows) +
         2.2e-4 * static_cast<double>(c.prefill_rows) +
         6e-8 * static_cast<double>(c.context_tokens);
}

inline double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(p * static_cast<double>(values.size() - 1) + 0.5);
  return values[at];
}

}  // namespace spud::scheduler
