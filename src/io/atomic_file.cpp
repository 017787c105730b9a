// SPDX-License-Identifier: Apache-2.0
#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/check.hpp"

namespace spud::io {
namespace {

constexpr std::string_view kTemporaryMark = ".spud-tmp-";
constexpr int kNameTries = 1000;
// One write() never takes more than 0x7ffff000 bytes; smaller pieces also let signals in.
constexpr std::size_t kWriteBytes = std::size_t{64} << 20;

std::unexpected<Error> io_error(std::string_view verb, const std::filesystem::path& path,
                                int error) {
  const auto reason = std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT) {
    return fail(ErrorCode::kResourceExhausted,
                "no space left to {} '{}': free some space or choose another folder", verb,
                path.string());
  }
  if (error == ENOENT) {
    return fail(ErrorCode::kNotFound, "cannot {} '{}': its folder does not exist", verb,
                path.string());
  }
  return fail(ErrorCode::kInvalidArgument, "cannot {} '{}': {}", verb, path.string(), reason);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Makes the rename itself durable. File systems without folder sync answer EINVAL: nothing to do.
Result<void> sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return io_error("sync", folder, errno);
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0 && error != EINVAL) return io_error("sync", folder, error);
  return {};
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target, std::filesystem::path temporary,
                       int fd) noexcept
    : target_(std::move(target)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_written_(other.bytes_written_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_written_, other.bytes_written_);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(std::filesystem::path target) {
  if (!target.has_filename()) {
    return fail(ErrorCode::kInvalidArgument, "'{}' does not name a file", target.string());
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(target, ignored)) {
    return fail(ErrorCode::kInvalidArgument, "cannot write '{}': it is a folder", target.string());
  }
  const std::string name = target.filename().string();
  for (int attempt = 0; attempt < kNameTries; ++attempt) {
    auto temporary =
        folder_of(target) / fmt::format("{}{}{}-{}", name, kTemporaryMark, ::getpid(), attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return AtomicFile(std::move(target), std::move(temporary), fd);
    if (errno != EEXIST) return io_error("write", target, errno);
  }
  return fail(ErrorCode::kResourceExhausted,
              "cannot write '{}': {} temporary files of it are already there, delete them",
              target.string(), kNameTries);
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  SPUD_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const auto written = ::write(fd_, bytes.data(), std::min(bytes.size(), kWriteBytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error("write", target_, errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    bytes_written_ += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> AtomicFile::pad_to(std::uint64_t step) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  std::uint64_t missing = (step - bytes_written_ % step) % step;
  while (missing > 0) {
    const auto part = std::min<std::uint64_t>(missing, kZeros.size());
    SPUD_TRY(write(std::span(kZeros).first(static_cast<std::size_t>(part))));
    missing -= part;
  }
  return {};
}

Result<void> AtomicFile::commit() {
  SPUD_CHECK(fd_ >= 0);
  if (::fsync(fd_) != 0) return io_error("write", target_, errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    return io_error("replace", target_, errno);
  }
  // Renamed: from here on there is nothing to unlink. Some file systems report a failed write only
  // on close.
  if (::close(std::exchange(fd_, -1)) != 0) return io_error("write", target_, errno);
  return sync_folder(folder_of(target_));
}

Result<void> write_file_atomically(const std::filesystem::path& path,
                                   std::span<const std::byte> bytes) {
  SPUD_TRY(auto file, AtomicFile::create(path));
  SPUD_TRY(file.write(bytes));
  return file.commit();
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text)));
}

bool is_temporary_name(std::string_view file_name) noexcept {
  return file_name.find(kTemporaryMark) != std::string_view::npos;
}

}  // namespace spud::io
