// SPDX-License-Identifier: Apache-2.0
// One source of requests: how they arrive, how long they are, who sends them. A run has one or
// more.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "loadgen/trace.hpp"

namespace spud::loadgen {

enum class ArrivalKind : std::uint8_t {
  kPoisson,   // independent of each other, `rate` a second
  kGamma,     // gaps with coefficient of variation `cv`: above 1 in bursts, below 1 evenly
  kConstant,  // one gap
  kBurst,     // all at once
  kTrace,     // as recorded, lengths too; time runs `speed` times as fast
  kClosed,    // `clients` that each send the next when the last one ended
};

// Uniform in [least, most].
struct Lengths {
  std::int64_t least = 1;
  std::int64_t most = 1;
};

struct TenantOptions {
  std::string name = "all";
  std::string api_key;
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  double rate = 1;   // requests a second
  double cv = 1;     // gamma
  double speed = 1;  // trace
  std::int64_t clients = 1;
  std::int64_t requests = 0;  // 0 = until the run's duration is over
  double start_s = 0;         // idle until then
  Lengths prompt{128, 128};
  Lengths output{64, 64};
  std::int64_t shared_prefix = 0;  // tokens that all prompts of the run begin with, on top
  std::vector<TraceEntry> trace;

  [[nodiscard]] Result<void> validate() const;
};

// "128" or "100-200".
[[nodiscard]] Result<Lengths> parse_lengths(std::string_view text);
[[nodiscard]] Result<ArrivalKind> parse_arrivals(std::string_view name);
// "name=flood,key=K,arrivals=burst,requests=64,prompt=1000,output=16": what is not named stays as
// in `base`.
[[nodiscard]] Result<TenantOptions> parse_tenant(std::string_view text, TenantOptions base);

}  // namespace spud::loadgen
