// SPDX-License-Identifier: Apache-2.0
// A day of recorded traffic (Azure LLM inference traces of 2023: arrival, prompt and answer
// lengths) on a simulated machine that is busy most of the time: nobody starves.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "scheduler/policies.hpp"
#include "scheduler/simulation.hpp"

namespace spud::scheduler {
namespace {

namespace fs = std::filesystem;

constexpr double kDay = 86'400;
// Longest prompt and answer that fit the simulated model.
constexpr std::int64_t kContext = 8192;

fs::path shared_folder() {
  if (const char* path = std::getenv("SPUD_SHARED")) return path;
  for (fs::path at = fs::current_path(); at != at.root_path(); at = at.parent_path()) {
    if (fs::exists(at / "shared/traces")) return at / "shared";
  }
  return "../shared";
}

// "2023-11-16 18:17:03.9799600,4808,10"; seconds of the day.
std::optional<SimRequest> parse(const std::string& line) {
  int hour = 0;
  int minute = 0;
  double second = 0;
  long prompt = 0;
  long output = 0;
  if (std::sscanf(line.c_str(), "%*d-%*d-%*d %d:%d:%lf,%ld,%ld", &hour, &minute, &second, &prompt,
                  &output) != 5) {
    return std::nullopt;
  }
  SimRequest request{.arrival_s = hour * 3600 + minute * 60 + second,
                     .prompt = std::clamp<std::int64_t>(prompt, 1, kContext - 1024),
                     .output = std::clamp<std::int64_t>(output, 1, 1024),
                     .max_tokens = 1024};
  return request;
}

// The trace's hour stretched to a day.
std::vector<SimRequest> load(const fs::path& path) {
  std::ifstream in(path);
  std::vector<SimRequest> requests;
  for (std::string line; std::getline(in, line);) {
    if (const auto request = parse(line)) requests.push_back(*request);
  }
  if (requests.empty()) return requests;
  const double first = requests.front().arrival_s;
  const double span = requests.back().arrival_s - first;
  for (SimRequest& request : requests) {
    request.arrival_s = (request.arrival_s - first) / span * kDay;
    request.who.tenant = static_cast<std::uint32_t>(&request - requests.data()) % 3;
    request.who.weight = 1 + request.who.tenant;
  }
  return requests;
}

class TraceTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TraceTest, NobodyStarvesInADay) {
  const fs::path path = shared_folder() / "traces" / GetParam();
  std::vector<SimRequest> requests = load(path);
  if (requests.empty()) GTEST_SKIP() << path << " is not there; set SPUD_SHARED";
  // So slow that the day's work fills 60 % of the day (more in its busy hours), if nothing is ever
  // computed twice and eight always share the cost of a step.
  const auto rows = [](const StepCost& c) {
    return 40 + 4.0 * static_cast<double>(c.decode_rows) + static_cast<double>(c.prefill_rows) +
           1e-4 * static_cast<double>(c.context_tokens);
  };
  double work = 0;
  std::vector<double> work_of;
  for (const SimRequest& request : requests) {
    const auto prompt = static_cast<double>(request.prompt);
    work_of.push_back(prompt * (1.2 + 1e-4 * prompt / 2) +
                      static_cast<double>(request.output) * (9 + 1e-4 * prompt));
    work += work_of.back();
  }
  const double unit = 0.6 * kDay / work;
  SimOptions options{.limits = {.step_target = std::chrono::nanoseconds(
                                    static_cast<std::int64_t>(unit * 400 * 1e9))},
                     .pages = 2048,
                     .machine = [&](const StepCost& cost) { return unit * rows(cost); }};
  auto scheduler = *make_scheduler("fair", options.limits);
  const SimReport report = Simulation(*scheduler, options).run(requests);
  double longest = 0;
  std::vector<double> waits;
  std::int64_t preempted = 0;
  for (const SimResult& result : report.results) {
    ASSERT_GT(result.finished_s, 0);
    longest = std::max(longest, result.first_token_s);
    waits.push_back(result.first_token_s);
    preempted += result.preempted;
  }
  std::printf(
      "%s: %zu requests, %zu steps, first token p50 %.1f s, p99 %.1f s, longest %.1f s, "
      "%ld preempted, at most %ld waiting\n",
      GetParam(), requests.size(), report.steps_s.size(), percentile(waits, 0.5),
      percentile(waits, 0.99), longest, static_cast<long>(preempted),
      static_cast<long>(report.most_waiting));
  // The traffic comes in bursts, stretched as all else. While work is left over from one, whoever
  // is served late may be served fairly; beyond the end of the longest such time he is starving.
  double busy = 0;
  double longest_busy = 0;
  double left = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double passed = i == 0 ? 0 : requests[i].arrival_s - requests[i - 1].arrival_s;
    busy = left > passed ? busy + passed : 0;
    left = std::max(left - passed, 0.0) + unit * work_of[i];
    longest_busy = std::max(longest_busy, busy + left);
  }
  EXPECT_LT(longest, longest_busy);
  EXPECT_LT(preempted, std::ssize(requests) / 10);
}

INSTANTIATE_TEST_SUITE_P(Azure, TraceTest,
                         ::testing::Values("azure_llm_2023_conv.csv", "azure_llm_2023_code.csv"),
                         [](const auto& param) {
                           return std::string(param.param).find("conv") != std::string::npos
                                      ? "Conversations"
                                      : "Code";
                         });

}  // namespace
}  // namespace spud::scheduler
