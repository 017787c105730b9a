// SPDX-License-Identifier: Apache-2.0
#include "model/weight_arena.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace spud::model {

Result<std::unique_ptr<WeightArena>> WeightArena::create(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::kResourceExhausted, "no memory for {} bytes of weights", bytes);
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without it things only get slower
  return std::unique_ptr<WeightArena>(new WeightArena(static_cast<std::byte*>(memory), bytes));
}

WeightArena::~WeightArena() { ::munmap(data_, bytes_); }

}  // namespace spud::model
