// SPDX-License-Identifier: Apache-2.0
// A whole file mapped read-only into memory. Pages come from the page cache, so two processes share
// them and nothing is copied. Refuses what cannot be mapped (folders, devices, empty files) with a
// sentence. Not guarded: a file that another process shortens while it is mapped (the kernel sends
// SIGBUS); artifacts are replaced by rename (atomic_file.hpp), which never shortens one in place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/result.hpp"

namespace spud::io {

// Immutable once open; thread-safe. Move-only: the mapping has one owner.
class MappedFile {
 public:
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace spud::io
