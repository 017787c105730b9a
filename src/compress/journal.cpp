// SPDX-License-Identifier: Apache-2.0
#include "compress/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/json_text.hpp"
#include "compress/json_fields.hpp"

namespace spud::compress {

std::string to_json(const Journal& journal) {
  return pretty_json(internal::JsonWriter::convert(journal));
}

Result<Journal> parse_journal(std::string_view json) {
  return internal::parse_json_text<Journal>(json, "the journal");
}

std::string_view to_string(AttemptState state) noexcept {
  return enum_names(state)[static_cast<std::size_t>(state)];
}
std::string_view to_string(StepStatus status) noexcept {
  return enum_names(status)[static_cast<std::size_t>(status)];
}
std::string_view to_string(Decision decision) noexcept {
  return enum_names(decision)[static_cast<std::size_t>(decision)];
}

Result<FolderLock> FolderLock::acquire(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return fail(ErrorCode::kInvalidArgument, "'{}' cannot be written: {}", path.string(),
                std::strerror(errno));
  }
  FolderLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::kUnavailable,
                "another chain is working in '{}'; wait for it or choose another --out",
                folder.string());
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace spud::compress
