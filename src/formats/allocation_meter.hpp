// SPDX-License-Identifier: Apache-2.0
// Counts what the test program allocates (its operator new is replaced in
// allocation_meter_test.cpp): shows that a hostile file cannot make a parser ask for more than it
// paid for.
#pragma once

#include <cstddef>

namespace spud::formats {

// The largest sum of live allocations between construction and now, beyond what was live before.
// One at a time, on one thread.
class AllocationMeter {
 public:
  AllocationMeter();
  std::size_t peak_bytes() const;

 private:
  std::size_t before_;
};

}  // namespace spud::formats
