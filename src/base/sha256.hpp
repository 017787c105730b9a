// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4, by OpenSSL): the identity of files, tensors, tokenizers, data sets and keys.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace spud {

using Sha256Digest = std::array<std::byte, 32>;

// Incremental; thread-compatible.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  // Ends the computation; the object must not be used afterwards.
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);
std::string to_hex(std::span<const std::byte> bytes);
// 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

// Compares in time that depends on the length only (for keys).
bool equal_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace spud
