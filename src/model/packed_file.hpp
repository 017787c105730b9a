// SPDX-License-Identifier: Apache-2.0
// Packed weights kept on disk, so that a start maps what another start has packed: nothing is
// computed, processes share the pages, and the kernel may drop them when memory is short. A file is
// named by the digest of the tensors it was made from and of the layout; there is one layout for
// all CPUs (kernels/packed_layout.hpp), so the CPU is not part of it. Both the source and what is
// mapped are hashed at each start (XXH3, at memory speed): a stale or damaged file is packed anew.
//
// The price: file pages are 4 kB, where the anonymous arena has huge ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "concurrency/thread_pool.hpp"
#include "model/weight_arena.hpp"

namespace spud::model {

// One matrix: where it comes from, and where it lies in the arena.
struct PackedTensor {
  std::string_view name;
  std::span<const std::byte> source;  // the file's blocks
  std::string_view type;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::size_t offset = 0;
};

struct PackedDigest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const PackedDigest&) const = default;
};

// Of everything that decides what the packed bytes are.
PackedDigest digest_of(std::span<const PackedTensor> tensors, concurrency::ThreadPool& pool);

std::filesystem::path packed_path(const std::filesystem::path& folder, const PackedDigest& digest);

// kNotFound when there is no such file, kDataLoss when it is not what its name says.
[[nodiscard]] Result<std::unique_ptr<WeightArena>> map_packed(const std::filesystem::path& path,
                                                              const PackedDigest& digest,
                                                              std::size_t bytes,
                                                              concurrency::ThreadPool& pool);

// Makes the folder when it is not there; replaces the file whole or not at all.
[[nodiscard]] Result<void> write_packed(const std::filesystem::path& path,
                                        const PackedDigest& digest, const WeightArena& arena,
                                        concurrency::ThreadPool& pool);

}  // namespace spud::model
