// SPDX-License-Identifier: Apache-2.0
// The memory of all packed weights of a model: one anonymous mapping to pack into, in huge pages
// where the system gives them (every step reads all of it, and with 4 kB pages the translation
// misses cost a few percent), or a file of packed weights, read-only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "io/mapped_file.hpp"

namespace spud::model {

// Owns the mapping. Thread-compatible.
class WeightArena {
 public:
  static constexpr std::size_t kAlignment = 64;

  // Maps `bytes` (zero filled). kResourceExhausted when the system refuses.
  [[nodiscard]] static Result<std::unique_ptr<WeightArena>> create(std::size_t bytes);
  // What follows the first `skip` bytes (a multiple of kAlignment) of a file.
  static std::unique_ptr<WeightArena> view(io::MappedFile file, std::size_t skip);
  ~WeightArena();
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  std::byte* writable() noexcept { return anonymous_; }  // null for a view

 private:
  WeightArena() = default;
  std::span<const std::byte> bytes_;
  std::byte* anonymous_ = nullptr;
  std::optional<io::MappedFile> file_;
};

}  // namespace spud::model
