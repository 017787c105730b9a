// SPDX-License-Identifier: Apache-2.0
// Sends a plan to a server and notes what became of every request. Open tenants send when the plan
// says, whatever the server does; closed ones when an answer has ended. Everything is bounded: what
// is in flight (a request beyond that is dropped and counted), the length of the plan, every wait.
// One thread, and it is the caller's.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "http/client.hpp"
#include "loadgen/arrivals.hpp"
#include "loadgen/outcome.hpp"
#include "loadgen/prompts.hpp"
#include "loadgen/tenant.hpp"

namespace spud::loadgen {

struct RunProgress {
  std::size_t sent = 0;
  std::size_t finished = 0;
  std::size_t in_flight = 0;
  std::size_t planned = 0;  // open requests in all
};

struct RunOptions {
  Nanoseconds duration = std::chrono::seconds(30);  // closed tenants send nothing new after it
  // After the last request was sent, running ones have so long to end.
  Nanoseconds drain = std::chrono::seconds(60);
  std::size_t max_in_flight = 1024;
  http::ClientOptions client;
  std::function<void(const RunProgress&)> on_progress;  // about four times a second
  bool handle_interrupt = false;                        // Ctrl-C ends the run, not the program
};

struct RunResult {
  std::deque<Outcome> outcomes;
  Nanoseconds wall{0};
  bool interrupted = false;
  // The first message of each kind of failure, "http 429" and so on.
  std::map<std::string, std::string> messages;
};

// "http 429", or the kind's name.
std::string failure_name(const Outcome& outcome);

RunResult run_load(const std::vector<TenantOptions>& tenants, const Plan& plan,
                   const PromptMaker& prompts, const http::Url& url, const RunOptions& options);

}  // namespace spud::loadgen
