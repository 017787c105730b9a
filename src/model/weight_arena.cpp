// SPDX-License-Identifier: Apache-2.0
#include "model/weight_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace spud::model {

Result<std::unique_ptr<WeightArena>> WeightArena::create(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::kResourceExhausted, "no memory for {} bytes of weights", bytes);
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without it things only get slower
  std::unique_ptr<WeightArena> arena(new WeightArena());
  arena->anonymous_ = static_cast<std::byte*>(memory);
  arena->bytes_ = {arena->anonymous_, bytes};
  return arena;
}

std::unique_ptr<WeightArena> WeightArena::view(io::MappedFile file, std::size_t skip) {
  std::unique_ptr<WeightArena> arena(new WeightArena());
  arena->bytes_ = file.bytes().subspan(skip);
  arena->file_ = std::move(file);
  return arena;
}

WeightArena::~WeightArena() {
  if (anonymous_ != nullptr) ::munmap(anonymous_, bytes_.size());
}

}  // namespace spud::model
