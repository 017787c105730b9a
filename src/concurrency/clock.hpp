// SPDX-License-Identifier: Apache-2.0
// Time is injected, so that tests need no sleeping. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace spud::concurrency {

using SteadyTime = std::chrono::steady_clock::time_point;
using SystemTime = std::chrono::system_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime now() const = 0;         // for durations and deadlines
  virtual SystemTime system_now() const = 0;  // for timestamps a person reads
};

class RealClock final : public Clock {
 public:
  SteadyTime now() const override { return std::chrono::steady_clock::now(); }
  SystemTime system_now() const override { return std::chrono::system_clock::now(); }
};

// Stands still until advanced.
class FakeClock final : public Clock {
 public:
  SteadyTime now() const override { return SteadyTime(std::chrono::nanoseconds(offset_.load())); }
  SystemTime system_now() const override {
    return SystemTime(
        std::chrono::duration_cast<SystemTime::duration>(std::chrono::nanoseconds(offset_.load())));
  }
  void advance(std::chrono::nanoseconds by) { offset_ += by.count(); }

 private:
  std::atomic<std::int64_t> offset_{0};
};

}  // namespace spud::concurrency
