// SPDX-License-Identifier: Apache-2.0
// Reads little-endian fields from bytes nobody has checked. The error is sticky: after the first
// read past the end every read gives zero and the position stays, so a parser asks ok() once per
// record instead of once per field. A count is checked against the bytes that remain *before*
// anything is allocated (count()); no length is ever added to an offset without that check.
// Does not seek back and does not copy: what it returns points into the bytes it was given.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"

namespace spud::io {

static_assert(std::endian::native == std::endian::little, "fields are read in place");

// Thread-compatible.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  bool ok() const noexcept { return !error_; }
  std::size_t position() const noexcept { return position_; }
  std::size_t remaining() const noexcept { return ok() ? bytes_.size() - position_ : 0; }

  // A number of any arithmetic type; zero after an error.
  template <typename T>
    requires std::is_arithmetic_v<T>
  T read(std::string_view what) {
    T value{};
    const auto raw = bytes(sizeof(T), what);
    if (raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  // The next `size` bytes; empty after an error.
  std::span<const std::byte> bytes(std::uint64_t size, std::string_view what);

  // Length as u64, then that many bytes; at most `limit`. Empty after an error.
  std::string_view string(std::uint64_t limit, std::string_view what);

  // Accepts a count read from the file only if `count` items of at least `item_bytes` each can
  // still follow; otherwise fails and returns 0. What it returns is safe to reserve().
  std::size_t count(std::uint64_t count, std::size_t item_bytes, std::string_view what);

  // Moves on to a multiple of `step`. Missing bytes at the very end are an error.
  void align(std::uint64_t step, std::string_view what);

  // Makes the reader fail with this sentence, unless it has failed already.
  template <typename... Args>
  void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    if (ok()) error_.emplace(code, fmt::format(format, std::forward<Args>(args)...));
  }

  // The first error; Result<void>{} while ok.
  Result<void> status() const;

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  std::optional<Error> error_;
};

// Text from a file made fit for a message: control characters and broken UTF-8 escaped, cut after
// `limit` bytes, so that a hostile name cannot drive the reader's terminal.
std::string printable(std::string_view text, std::size_t limit = 80);

}  // namespace spud::io
