// SPDX-License-Identifier: Apache-2.0
// When a waiting request would be complete: the fair policy run ahead in coarse strides. Prompts
// are served by tenant and rank as in a plan, decoding goes on beside them, places and pages are
// taken and given back, and every step costs what the cost model says. Answers are as long as
// answers were lately, unless the request says how long. Nothing that may still arrive is foreseen.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "scheduler/cost_model.hpp"
#include "scheduler/fair_queue.hpp"
#include "scheduler/length_history.hpp"
#include "scheduler/scheduler.hpp"

namespace spud::scheduler::internal {

// Seconds that a step may take, beside decode rows that take `decoding_s`; `shared`: tenants share
// the machine.
double step_target_s(const SchedulerOptions& options, double decoding_s, bool shared);
// Smaller goes first. A level of priority is worth a head start of `ageing`: the same for all, so
// that the order never changes and nobody starves.
std::int64_t rank_of(const SequenceClass& who, const SchedulerOptions& options);

// Lives during one call of plan().
class DeadlineForecast {
 public:
  // `queue` knows all tenants of `input`.
  DeadlineForecast(const SchedulerOptions& options, const SchedulerInput& input,
                   const CostModel& model, const FairQueue& queue, const LengthHistory& lengths,
                   bool shared);

  // Takes no part: expired, refused.
  void drop(SequenceId id);
  enum class Turn { kInOrder, kNext };
  // Seconds from now until `view`, one of the waiting, is complete. Exact only around `enough_s`:
  // what is surely earlier may be given as later, and what takes several times as long as earlier,
  // but never across it. kNext: if it were the next to be served.
  double completion_s(const WaitingView& view, double enough_s, Turn turn) const;

 private:
  struct Job {
    SequenceId id;
    std::uint32_t tenant = 0;
    std::int64_t rank = 0;
    bool running = false;
    double rows = 0;    // of the prompt, to be computed
    double tokens = 0;  // to be sampled
    double context = 0;
    double pages = 0;      // holds, or takes when it is admitted
    double new_pages = 0;  // of those, not held yet
  };
  struct Tenant {
    double time = 0;
    double weight = 1;
    std::int64_t running = 0;
    std::vector<std::size_t> prompts;  // jobs, the best one last
  };
  struct Run;

  Job make_job(const RunningView& view) const;
  Job make_job(const WaitingView& view) const;
  double most_s(const Job& own) const;
  bool admit(Run& run, Job& job) const;
  bool make_place(Run& run, const Job& job) const;
  Job* pick_prompt(Run& run) const;
  void stride(Run& run, Job* prompt) const;
  void end_finished(Run& run) const;

  const SchedulerOptions& options_;
  const CostModel& model_;
  const FairQueue& queue_;
  const LengthHistory& lengths_;
  bool shared_;
  double free_pages_;
  std::vector<Job> jobs_;  // of all but who was dropped
};

}  // namespace spud::scheduler::internal
