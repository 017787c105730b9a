// SPDX-License-Identifier: Apache-2.0
#include "formats/allocation_meter.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace spud::formats {
namespace {

// The one place with global state: an allocator has no other way to report.
std::atomic<std::size_t> g_live{0};
std::atomic<std::size_t> g_peak{0};

void* counted(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) return nullptr;
  const std::size_t live = g_live += ::malloc_usable_size(memory);
  std::size_t peak = g_peak;
  while (live > peak && !g_peak.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

// Not inlined: GCC would see free() behind operator delete and call the pair mismatched.
[[gnu::noinline]] void uncounted(void* memory) noexcept {
  if (memory != nullptr) g_live -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

AllocationMeter::AllocationMeter() : before_(g_live) { g_peak = before_; }

std::size_t AllocationMeter::peak_bytes() const {
  const std::size_t peak = g_peak;
  return peak > before_ ? peak - before_ : 0;
}

TEST(AllocationMeter, SeesTheLargestSumOfLiveAllocations) {
  const AllocationMeter meter;
  {
    const std::vector<char> one(1 << 20);
  }
  {
    const std::vector<char> two(1 << 20);
  }
  EXPECT_GE(meter.peak_bytes(), 1U << 20);
  EXPECT_LT(meter.peak_bytes(), 2U << 20);
}

}  // namespace spud::formats

void* operator new(std::size_t size) {
  if (void* memory = spud::formats::counted(size)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return ::operator new(size); }
void operator delete(void* memory) noexcept { spud::formats::uncounted(memory); }
void operator delete[](void* memory) noexcept { spud::formats::uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { spud::formats::uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { spud::formats::uncounted(memory); }
