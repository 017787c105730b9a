// SPDX-License-Identifier: Apache-2.0
// One anonymous mapping for all packed weights of a model, in huge pages where the system gives
// them: every step reads all of it, and with 4 kB pages the translation misses cost a few percent.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.hpp"

namespace spud::model {

// Owns the mapping. Thread-compatible.
class WeightArena {
 public:
  static constexpr std::size_t kAlignment = 64;

  // Maps `bytes` (zero filled). kResourceExhausted when the system refuses.
  [[nodiscard]] static Result<std::unique_ptr<WeightArena>> create(std::size_t bytes);
  ~WeightArena();
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  std::byte* data() noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  WeightArena(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace spud::model
