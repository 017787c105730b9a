// SPDX-License-Identifier: Apache-2.0
#include "io/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace spud::io {
namespace {

std::unexpected<Error> open_error(const std::filesystem::path& path, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return fail(ErrorCode::kNotFound, "no file '{}'", path.string());
  }
  return fail(ErrorCode::kInvalidArgument, "cannot read '{}': {}", path.string(),
              std::generic_category().message(error));
}

struct FileDescriptor {
  int fd;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer; it is refused below.
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return open_error(path, errno);
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) return open_error(path, errno);
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is a folder, not a file", path.string());
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is not a regular file", path.string());
  }
  if (status.st_size == 0) {
    return fail(ErrorCode::kInvalidArgument, "'{}' is empty (0 bytes)", path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) return open_error(path, errno);
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace spud::io
