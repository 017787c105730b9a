// SPDX-License-Identifier: Apache-2.0
// Replaces a file in one step: bytes go to a temporary file beside the target, which is synced and
// renamed over it on commit(). Whoever looks sees the old file or the new one, never half of one,
// also after a crash or a full disk. A file that is not committed is deleted again; one that a
// killed process left behind is recognised by its name (is_temporary_name).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace spud::io {

// Thread-compatible; move-only.
class AtomicFile {
 public:
  // The folder of `target` must exist.
  [[nodiscard]] static Result<AtomicFile> create(std::filesystem::path target);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> write(std::string_view text) {
    return write(std::as_bytes(std::span(text)));
  }
  // Zeros up to a multiple of `step`.
  [[nodiscard]] Result<void> pad_to(std::uint64_t step);
  std::uint64_t bytes_written() const noexcept { return bytes_written_; }

  // Syncs the file, renames it over the target, syncs the folder. Once only, and last.
  [[nodiscard]] Result<void> commit();

 private:
  AtomicFile(std::filesystem::path target, std::filesystem::path temporary, int fd) noexcept;
  void discard() noexcept;

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  std::uint64_t bytes_written_ = 0;
};

// Replaces `path` by these bytes, whole or not at all.
[[nodiscard]] Result<void> write_file_atomically(const std::filesystem::path& path,
                                                 std::span<const std::byte> bytes);
[[nodiscard]] Result<void> write_file_atomically(const std::filesystem::path& path,
                                                 std::string_view text);

// Whether a file name (without folder) is one that AtomicFile gives its temporary files.
bool is_temporary_name(std::string_view file_name) noexcept;

}  // namespace spud::io
