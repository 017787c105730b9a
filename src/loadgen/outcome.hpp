// SPDX-License-Identifier: Apache-2.0
// What became of one request, in times since the run began.
//
// Every latency counts from `scheduled`, the moment the arrival process wanted the request sent,
// not from when a busy generator or a full connection limit let it go: else a server that stalls
// would also stop the clock of all who wait for it (coordinated omission). In a closed loop the two
// are the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace spud::loadgen {

using Nanoseconds = std::chrono::nanoseconds;

enum class OutcomeKind : std::uint8_t {
  kOk,
  kDropped,      // never sent: too many were in flight
  kConnect,      // no connection
  kTimeout,      // a time limit of the client
  kHttpStatus,   // an answer that is not 200
  kBroken,       // the stream broke off, or is not what it should be
  kServerError,  // an error event in the stream
  kUnfinished,   // still running when the run ended
};
const char* to_string(OutcomeKind kind) noexcept;

struct Outcome {
  OutcomeKind kind = OutcomeKind::kUnfinished;
  std::int16_t http_status = 0;
  std::uint16_t tenant = 0;
  Nanoseconds scheduled{0};
  Nanoseconds sent{0};
  Nanoseconds first_text{0};  // first event with text
  Nanoseconds last_text{0};
  Nanoseconds ended{0};            // end of the stream
  Nanoseconds longest_gap{0};      // between two events with text
  std::int64_t prompt_tokens = 0;  // as the server counts
  std::int64_t cached_tokens = 0;
  std::int64_t output_tokens = 0;

  bool ok() const noexcept { return kind == OutcomeKind::kOk; }
  Nanoseconds time_to_first_token() const noexcept { return first_text - scheduled; }
  Nanoseconds end_to_end() const noexcept { return ended - scheduled; }
  // Of the tokens after the first; zero when there is only one.
  Nanoseconds time_per_output_token() const noexcept {
    return output_tokens > 1 ? (last_text - first_text) / (output_tokens - 1) : Nanoseconds{0};
  }
};

}  // namespace spud::loadgen
